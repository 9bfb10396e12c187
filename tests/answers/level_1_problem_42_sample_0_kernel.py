import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

cuda_src = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cmath>

constexpr int COLS = 128, ROWS = 64;

// 4x4 window, stride 1. The maximum is separable: a thread walks down one column of outputs,
// takes the maximum over 4 neighbours of each input row (the overlaps hit L1), and keeps the
// row maxima of the last three rows in registers.
__global__ __launch_bounds__(COLS)
void maxpool4x4_kernel(const float* __restrict__ x, float* __restrict__ y, int H, int W, int OH,
                       int OW, int pad) {
    const int ox = blockIdx.x * COLS + threadIdx.x;
    const int oy0 = blockIdx.y * ROWS;
    if (ox >= OW) return;
    const float* in = x + (size_t)blockIdx.z * H * W;
    float* out = y + (size_t)blockIdx.z * OH * OW;
    const int x0 = ox - pad;
    const bool inside = x0 >= 0 && x0 + 3 < W;

    auto row_max = [&](int iy) -> float {
        if (iy < 0 || iy >= H) return -INFINITY;
        const float* r = in + (size_t)iy * W;
        if (inside)
            return fmaxf(fmaxf(__ldg(r + x0), __ldg(r + x0 + 1)),
                         fmaxf(__ldg(r + x0 + 2), __ldg(r + x0 + 3)));
        float m = -INFINITY;
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
            const int c = x0 + k;
            if (c >= 0 && c < W) m = fmaxf(m, __ldg(r + c));
        }
        return m;
    };

    float m0 = row_max(oy0 - pad), m1 = row_max(oy0 - pad + 1), m2 = row_max(oy0 - pad + 2);
    const int oy1 = min(oy0 + ROWS, OH);
    #pragma unroll 4
    for (int oy = oy0; oy < oy1; ++oy) {
        const float m3 = row_max(oy - pad + 3);
        out[(size_t)oy * OW + ox] = fmaxf(fmaxf(m0, m1), fmaxf(m2, m3));
        m0 = m1;
        m1 = m2;
        m2 = m3;
    }
}

torch::Tensor maxpool4x4(torch::Tensor x, int64_t pad) {
    x = x.contiguous();
    const int n = x.size(0), c = x.size(1), H = x.size(2), W = x.size(3);
    const int OH = H + 2 * (int)pad - 3, OW = W + 2 * (int)pad - 3;
    auto y = torch::empty({n, c, OH, OW}, x.options());
    const dim3 grid((OW + COLS - 1) / COLS, (OH + ROWS - 1) / ROWS, n * c);
    maxpool4x4_kernel<<<grid, COLS, 0, at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), H, W, OH, OW, (int)pad);
    return y;
}
"""

ext = load_inline(
    name="maxpool4x4_ext",
    cpp_sources="torch::Tensor maxpool4x4(torch::Tensor x, int64_t pad);",
    cuda_sources=cuda_src,
    functions=["maxpool4x4"],
    extra_cuda_cflags=["-O3"],
    verbose=False,
)


class ModelNew(nn.Module):
    def __init__(self, kernel_size: int, stride: int, padding: int, dilation: int):
        super().__init__()
        self.args = (kernel_size, stride, padding, dilation)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        k, s, p, d = self.args
        if (k, s, d) == (4, 1, 1) and x.shape[0] * x.shape[1] <= 65535:
            return ext.maxpool4x4(x, p)
        return F.max_pool2d(x, k, s, p, d)
