import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_src = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

// softplus(x) = max(x, 0) + log(1 + exp(-|x|)): the exponential never overflows, so there is no
// branch, and for x > 20 the second term is below the rounding of the first.
__device__ __forceinline__ float softplus(float x) {
    return fmaxf(x, 0.0f) + __logf(1.0f + __expf(-fabsf(x)));
}

__global__ __launch_bounds__(256)
void softplus_kernel(const float* __restrict__ x, float* __restrict__ y, int64_t n) {
    // Eight floats per thread, as two float4 that are 256 threads apart.
    const int64_t block_start = (int64_t)blockIdx.x * 2048;
    const int64_t i0 = block_start + threadIdx.x * 4;
    const int64_t i1 = i0 + 1024;
    if (block_start + 2048 <= n) {
        float4 a = __ldg(reinterpret_cast<const float4*>(x + i0));
        float4 b = __ldg(reinterpret_cast<const float4*>(x + i1));
        a.x = softplus(a.x); a.y = softplus(a.y); a.z = softplus(a.z); a.w = softplus(a.w);
        b.x = softplus(b.x); b.y = softplus(b.y); b.z = softplus(b.z); b.w = softplus(b.w);
        *reinterpret_cast<float4*>(y + i0) = a;
        *reinterpret_cast<float4*>(y + i1) = b;
    } else {
        for (int64_t i = block_start + threadIdx.x; i < n; i += 256) y[i] = softplus(x[i]);
    }
}

torch::Tensor softplus_forward(torch::Tensor x) {
    x = x.contiguous();
    auto y = torch::empty_like(x);
    const int64_t n = x.numel();
    softplus_kernel<<<(n + 2047) / 2048, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(
    name="softplus_ext",
    cpp_sources="torch::Tensor softplus_forward(torch::Tensor x);",
    cuda_sources=cuda_src,
    functions=["softplus_forward"],
    verbose=False,
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.softplus_forward(x)
