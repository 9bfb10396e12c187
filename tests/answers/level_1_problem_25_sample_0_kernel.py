import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

swish_cpp = "torch::Tensor swish_cuda(torch::Tensor x);"

swish_cu = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

__device__ __forceinline__ float swish(float v) {
    return __fdividef(v, 1.0f + __expf(-v));
}

// The sigmoid and the product are one pass: one read and one write per element.
__global__ __launch_bounds__(512)
void swish_kernel(const float4* __restrict__ x, float4* __restrict__ y, unsigned n4) {
    const unsigned i = blockIdx.x * 1024u + threadIdx.x;
    const unsigned j = i + 512u;
    float4 a, b;
    if (i < n4) a = __ldcs(&x[i]);
    if (j < n4) b = __ldcs(&x[j]);
    if (i < n4) {
        a.x = swish(a.x); a.y = swish(a.y); a.z = swish(a.z); a.w = swish(a.w);
        __stcs(&y[i], a);
    }
    if (j < n4) {
        b.x = swish(b.x); b.y = swish(b.y); b.z = swish(b.z); b.w = swish(b.w);
        __stcs(&y[j], b);
    }
}

torch::Tensor swish_cuda(torch::Tensor x) {
    TORCH_CHECK(x.is_cuda() && x.scalar_type() == torch::kFloat, "float32 CUDA tensor expected");
    const int64_t n = x.numel();
    if (n % 4 != 0 || n / 4 > 0xffff0000LL) return x * at::sigmoid(x);
    x = x.contiguous();
    auto y = torch::empty_like(x);
    const unsigned n4 = n / 4;
    swish_kernel<<<(n4 + 1023) / 1024, 512, 0, at::cuda::getCurrentCUDAStream()>>>(
        reinterpret_cast<const float4*>(x.data_ptr<float>()),
        reinterpret_cast<float4*>(y.data_ptr<float>()), n4);
    return y;
}
"""

swish_ext = load_inline(
    name="swish_ext",
    cpp_sources=swish_cpp,
    cuda_sources=swish_cu,
    functions=["swish_cuda"],
    extra_cuda_cflags=["-O3", "--use_fast_math"],
    verbose=False,
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return swish_ext.swish_cuda(x)
