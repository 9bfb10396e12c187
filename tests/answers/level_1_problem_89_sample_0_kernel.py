import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

// One block per row. Each pass scans 1024 threads x 4 floats with warp shuffles; the block's
// running total is carried in a register from pass to pass.
constexpr int THREADS = 1024;

__global__ void __launch_bounds__(THREADS) row_cumsum(const float* __restrict__ x,
                                                      float* __restrict__ y, int cols4) {
  __shared__ float warp_sums[2][32];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const float4* in = reinterpret_cast<const float4*>(x) + (size_t)blockIdx.x * cols4;
  float4* out = reinterpret_cast<float4*>(y) + (size_t)blockIdx.x * cols4;
  float carry = 0.f;
  int buf = 0;

  float4 next = threadIdx.x < cols4 ? in[threadIdx.x] : make_float4(0.f, 0.f, 0.f, 0.f);
  for (int base = 0; base < cols4; base += THREADS, buf ^= 1) {
    const int i = base + threadIdx.x;
    float4 v = next;
    const int j = i + THREADS;
    next = j < cols4 ? in[j] : make_float4(0.f, 0.f, 0.f, 0.f);   // prefetch

    v.y += v.x; v.z += v.y; v.w += v.z;
    float s = v.w;
#pragma unroll
    for (int d = 1; d < 32; d <<= 1) {
      float t = __shfl_up_sync(0xffffffffu, s, d);
      if (lane >= d) s += t;
    }
    if (lane == 31) warp_sums[buf][warp] = s;
    __syncthreads();

    // every warp scans the 32 warp totals by itself, which saves a second barrier
    float ws = warp_sums[buf][lane];
#pragma unroll
    for (int d = 1; d < 32; d <<= 1) {
      float t = __shfl_up_sync(0xffffffffu, ws, d);
      if (lane >= d) ws += t;
    }
    float before = __shfl_sync(0xffffffffu, ws, warp > 0 ? warp - 1 : 0);
    float total = __shfl_sync(0xffffffffu, ws, 31);
    float off = carry + (warp > 0 ? before : 0.f) + (s - v.w);
    carry += total;
    if (i < cols4) out[i] = make_float4(v.x + off, v.y + off, v.z + off, v.w + off);
  }
}

torch::Tensor cumsum_rows(torch::Tensor x) {
  auto y = torch::empty_like(x);
  int cols = x.size(-1);
  int rows = x.numel() / cols;
  row_cumsum<<<rows, THREADS, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), y.data_ptr<float>(), cols / 4);
  return y;
}
"""

scan = load_inline(name="row_cumsum_f4", cpp_sources="torch::Tensor cumsum_rows(torch::Tensor x);",
                   cuda_sources=cuda_source, functions=["cumsum_rows"],
                   extra_cuda_cflags=["-O3"], verbose=False)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        last = self.dim in (-1, x.dim() - 1)
        if last and x.dtype == torch.float32 and x.size(-1) % 4 == 0:
            return scan.cumsum_rows(x.contiguous())
        return torch.cumsum(x, dim=self.dim)
