import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_src = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

// x is seen as (outer, R, inner). One thread per (outer, inner) column: neighbouring threads
// read neighbouring addresses, and eight rows are in flight at a time.
__global__ __launch_bounds__(128)
void sum_kernel(const float* __restrict__ x, float* __restrict__ y, int R, int inner) {
    const int col = blockIdx.x * 128 + threadIdx.x;
    if (col >= inner) return;
    const float* p = x + (size_t)blockIdx.y * R * inner + col;
    float acc[8] = {};
    int r = 0;
    for (; r + 8 <= R; r += 8) {
        float v[8];
        #pragma unroll
        for (int u = 0; u < 8; ++u) v[u] = __ldcs(p + (size_t)u * inner);
        #pragma unroll
        for (int u = 0; u < 8; ++u) acc[u] += v[u];
        p += (size_t)8 * inner;
    }
    for (; r < R; ++r) {
        acc[0] += *p;
        p += inner;
    }
    y[(size_t)blockIdx.y * inner + col] = ((acc[0] + acc[1]) + (acc[2] + acc[3]))
                                        + ((acc[4] + acc[5]) + (acc[6] + acc[7]));
}

torch::Tensor sum_dim(torch::Tensor x, int64_t dim) {
    x = x.contiguous();
    if (dim < 0) dim += x.dim();
    int64_t outer = 1, inner = 1;
    for (int64_t i = 0; i < dim; ++i) outer *= x.size(i);
    for (int64_t i = dim + 1; i < x.dim(); ++i) inner *= x.size(i);
    if (inner < 128 || outer > 65535) return at::sum(x, {dim}, true);
    auto sizes = x.sizes().vec();
    const int R = sizes[dim];
    sizes[dim] = 1;
    auto y = torch::empty(sizes, x.options());
    const dim3 grid((inner + 127) / 128, outer);
    sum_kernel<<<grid, 128, 0, at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), R, (int)inner);
    return y;
}
"""

ext = load_inline(
    name="sum_dim_ext",
    cpp_sources="torch::Tensor sum_dim(torch::Tensor x, int64_t dim);",
    cuda_sources=cuda_src,
    functions=["sum_dim"],
    extra_cuda_cflags=["-O3"],
    verbose=False,
)


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.sum_dim(x, self.dim)
