import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

// out[row] = scale * sum over the windows of max(y + bias). One block of 1024 threads per row.
__global__ void __launch_bounds__(1024)
pool_sum(const float* __restrict__ y, const float* __restrict__ bias, float* __restrict__ out,
         int n, int k, float scale) {
    const float* yr = y + (size_t)blockIdx.x * n;
    const int tid = threadIdx.x;
    float s = 0.f;
    if (k == 2 && n % 4 == 0) {
        const float4* y4 = reinterpret_cast<const float4*>(yr);
        const float4* b4 = reinterpret_cast<const float4*>(bias);
#pragma unroll 4
        for (int i = tid; i < n / 4; i += blockDim.x) {
            float4 v = y4[i], b = __ldg(b4 + i);
            s += fmaxf(v.x + b.x, v.y + b.y) + fmaxf(v.z + b.z, v.w + b.w);
        }
    } else {
        for (int w = tid; w < n / k; w += blockDim.x) {
            float m = -INFINITY;
            for (int j = 0; j < k; ++j) m = fmaxf(m, yr[w * k + j] + bias[w * k + j]);
            s += m;
        }
    }
    __shared__ float red[32];
    for (int o = 16; o; o >>= 1) s += __shfl_down_sync(0xffffffff, s, o);
    if ((tid & 31) == 0) red[tid >> 5] = s;
    __syncthreads();
    if (tid < 32) {
        s = red[tid];
        for (int o = 16; o; o >>= 1) s += __shfl_down_sync(0xffffffff, s, o);
        if (tid == 0) out[blockIdx.x] = s * scale;
    }
}

torch::Tensor matmul_pool_sum(torch::Tensor x, torch::Tensor w, torch::Tensor b, int64_t k,
                              double scale) {
    const at::cuda::OptionalCUDAGuard guard(device_of(x));
    auto y = at::mm(x, w.t());
    auto out = torch::empty({y.size(0)}, y.options());
    pool_sum<<<(int)y.size(0), 1024, 0, at::cuda::getCurrentCUDAStream()>>>(
        y.data_ptr<float>(), b.data_ptr<float>(), out.data_ptr<float>(), (int)y.size(1), (int)k,
        (float)scale);
    return out;
}
"""

cpp_source = """
torch::Tensor matmul_pool_sum(torch::Tensor x, torch::Tensor w, torch::Tensor b, int64_t k,
                              double scale);
"""

ext = load_inline(name="matmul_pool_sum_ext", cpp_sources=cpp_source, cuda_sources=cuda_source,
                  functions=["matmul_pool_sum"], verbose=False)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, kernel_size, scale_factor):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.kernel_size = kernel_size
        self.scale_factor = scale_factor

    def forward(self, x):
        return ext.matmul_pool_sum(x, self.matmul.weight, self.matmul.bias, self.kernel_size,
                                   self.scale_factor)
