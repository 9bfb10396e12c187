import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

gelu_cu = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

__device__ __forceinline__ float gelu(float v) {
    return 0.5f * v * (1.0f + erff(v * 0.70710678118654752f));
}

__device__ __forceinline__ float4 gelu4(float4 v) {
    return make_float4(gelu(v.x), gelu(v.y), gelu(v.z), gelu(v.w));
}

// Persistent blocks; the next vector is loaded before the present one is worked on.
__global__ __launch_bounds__(256, 8)
void gelu_kernel(const float4* __restrict__ x, float4* __restrict__ y, size_t n4) {
    const size_t step = (size_t)gridDim.x * blockDim.x;
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n4) return;
    float4 cur = __ldcs(x + i);
    while (true) {
        const size_t next = i + step;
        float4 ahead;
        const bool more = next < n4;
        if (more) ahead = __ldcs(x + next);
        __stcs(y + i, gelu4(cur));
        if (!more) break;
        cur = ahead;
        i = next;
    }
}

__global__ void gelu_tail_kernel(const float* x, float* y, size_t from, size_t n) {
    const size_t i = from + threadIdx.x;
    if (i < n) y[i] = gelu(x[i]);
}

torch::Tensor gelu_forward(torch::Tensor x) {
    x = x.contiguous();
    auto y = torch::empty_like(x);
    const size_t n = x.numel(), n4 = n / 4;
    auto stream = at::cuda::getCurrentCUDAStream();
    const int sms = at::cuda::getCurrentDeviceProperties()->multiProcessorCount;
    gelu_kernel<<<sms * 8, 256, 0, stream>>>(
        reinterpret_cast<const float4*>(x.data_ptr<float>()),
        reinterpret_cast<float4*>(y.data_ptr<float>()), n4);
    if (n % 4)
        gelu_tail_kernel<<<1, 32, 0, stream>>>(x.data_ptr<float>(), y.data_ptr<float>(), n4 * 4, n);
    return y;
}
"""

gelu_ext = load_inline(
    name="gelu_persistent_ext",
    cpp_sources="torch::Tensor gelu_forward(torch::Tensor x);",
    cuda_sources=gelu_cu,
    functions=["gelu_forward"],
    extra_cuda_cflags=["-O3"],
    verbose=False,
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return gelu_ext.gelu_forward(x)
