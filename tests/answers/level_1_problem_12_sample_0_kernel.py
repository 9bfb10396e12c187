import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_src = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

// One block per row: the diagonal entry is read once, the row is scaled as float4.
__global__ void diag_mul_vec4(const float* __restrict__ d, const float4* __restrict__ B,
                              float4* __restrict__ C, int m4) {
    const size_t row = blockIdx.x;
    const float s = __ldg(d + row);
    const float4* b = B + row * m4;
    float4* c = C + row * m4;
    #pragma unroll 4
    for (int i = threadIdx.x; i < m4; i += blockDim.x) {
        float4 v = b[i];
        v.x *= s; v.y *= s; v.z *= s; v.w *= s;
        c[i] = v;
    }
}

__global__ void diag_mul_scalar(const float* __restrict__ d, const float* __restrict__ B,
                                float* __restrict__ C, int m) {
    const size_t row = blockIdx.x;
    const float s = d[row];
    for (int i = threadIdx.x; i < m; i += blockDim.x) C[row * m + i] = s * B[row * m + i];
}

torch::Tensor diag_mul(torch::Tensor A, torch::Tensor B) {
    A = A.contiguous();
    B = B.contiguous();
    auto C = torch::empty_like(B);
    const int n = B.size(0), m = B.size(1);
    auto stream = at::cuda::getCurrentCUDAStream();
    if (m % 4 == 0) {
        diag_mul_vec4<<<n, 256, 0, stream>>>(
            A.data_ptr<float>(), reinterpret_cast<const float4*>(B.data_ptr<float>()),
            reinterpret_cast<float4*>(C.data_ptr<float>()), m / 4);
    } else {
        diag_mul_scalar<<<n, 256, 0, stream>>>(
            A.data_ptr<float>(), B.data_ptr<float>(), C.data_ptr<float>(), m);
    }
    return C;
}
"""

ext = load_inline(
    name="diag_mul_ext",
    cpp_sources="torch::Tensor diag_mul(torch::Tensor A, torch::Tensor B);",
    cuda_sources=cuda_src,
    functions=["diag_mul"],
    verbose=False,
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, A, B):
        return ext.diag_mul(A, B)
