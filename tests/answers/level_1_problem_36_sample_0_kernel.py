import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_src = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

// One thread per pixel. All channels of the pixel stay in registers between the reduction and
// the division, so x is read once; a warp touches 128 consecutive bytes of every channel.
template <int C>
__global__ __launch_bounds__(256)
void rms_norm_regs(const float* __restrict__ x, float* __restrict__ y, int hw, float eps) {
    const int p = blockIdx.x * 256 + threadIdx.x;
    if (p >= hw) return;
    const size_t base = (size_t)blockIdx.y * C * hw + p;
    float v[C];
    #pragma unroll
    for (int c = 0; c < C; ++c) v[c] = __ldcs(x + base + (size_t)c * hw);
    float q0 = 0.f, q1 = 0.f;
    #pragma unroll
    for (int c = 0; c < C; c += 2) {
        q0 = fmaf(v[c], v[c], q0);
        q1 = fmaf(v[c + 1], v[c + 1], q1);
    }
    const float r = rsqrtf((q0 + q1) * (1.0f / C) + eps);
    #pragma unroll
    for (int c = 0; c < C; ++c) __stcs(y + base + (size_t)c * hw, v[c] * r);
}

__global__ void rms_norm_any(const float* __restrict__ x, float* __restrict__ y, int C, int hw,
                             float eps) {
    const int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= hw) return;
    const size_t base = (size_t)blockIdx.y * C * hw + p;
    float q = 0.f;
    for (int c = 0; c < C; ++c) {
        const float v = x[base + (size_t)c * hw];
        q += v * v;
    }
    const float r = rsqrtf(q / C + eps);
    for (int c = 0; c < C; ++c) y[base + (size_t)c * hw] = x[base + (size_t)c * hw] * r;
}

torch::Tensor rms_norm(torch::Tensor x, double eps) {
    x = x.contiguous();
    const int n = x.size(0), c = x.size(1);
    const int hw = x.numel() / ((int64_t)n * c);
    auto y = torch::empty_like(x);
    const dim3 grid((hw + 255) / 256, n);
    auto stream = at::cuda::getCurrentCUDAStream();
    if (c == 64)
        rms_norm_regs<64><<<grid, 256, 0, stream>>>(x.data_ptr<float>(), y.data_ptr<float>(), hw,
                                                    (float)eps);
    else
        rms_norm_any<<<grid, 256, 0, stream>>>(x.data_ptr<float>(), y.data_ptr<float>(), c, hw,
                                               (float)eps);
    return y;
}
"""

ext = load_inline(
    name="rms_norm_regs_ext",
    cpp_sources="torch::Tensor rms_norm(torch::Tensor x, double eps);",
    cuda_sources=cuda_src,
    functions=["rms_norm"],
    extra_cuda_cflags=["-O3"],
    verbose=False,
)


class ModelNew(nn.Module):
    def __init__(self, num_features: int, eps: float = 1e-5):
        super().__init__()
        self.num_features = num_features
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.rms_norm(x, self.eps)
