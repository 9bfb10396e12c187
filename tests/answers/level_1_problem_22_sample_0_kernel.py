import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_src = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

// tanh(x) = 1 - 2 / (exp(2x) + 1). exp overflows to inf for large x, which gives 1, and goes to
// 0 for very negative x, which gives -1, so no clamping is needed.
__device__ __forceinline__ float fast_tanh(float x) {
    return 1.0f - __fdividef(2.0f, __expf(2.0f * x) + 1.0f);
}

template <int UNROLL>
__global__ __launch_bounds__(256)
void tanh_kernel(const float* __restrict__ x, float* __restrict__ y, int64_t n) {
    const int64_t tile = (int64_t)blockIdx.x * (256 * 4 * UNROLL);
    #pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
        const int64_t i = tile + (int64_t)(u * 256 + threadIdx.x) * 4;
        if (i + 3 < n) {
            float4 v = __ldcs(reinterpret_cast<const float4*>(x + i));
            v.x = fast_tanh(v.x);
            v.y = fast_tanh(v.y);
            v.z = fast_tanh(v.z);
            v.w = fast_tanh(v.w);
            __stcs(reinterpret_cast<float4*>(y + i), v);
        } else {
            for (int64_t j = i; j < n; ++j) y[j] = fast_tanh(x[j]);
        }
    }
}

torch::Tensor tanh_forward(torch::Tensor x) {
    const at::cuda::CUDAGuard guard(x.device());
    x = x.contiguous();
    auto y = torch::empty_like(x);
    const int64_t n = x.numel();
    constexpr int UNROLL = 2;
    const int64_t per_block = 256 * 4 * UNROLL;
    tanh_kernel<UNROLL><<<(n + per_block - 1) / per_block, 256, 0,
                          at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(
    name="fast_tanh_ext",
    cpp_sources="torch::Tensor tanh_forward(torch::Tensor x);",
    cuda_sources=cuda_src,
    functions=["tanh_forward"],
    extra_cuda_cflags=["-O3"],
    verbose=False,
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.tanh_forward(x)
