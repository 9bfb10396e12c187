import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cub/block/block_scan.cuh>

// Suffix sum of each row, without materialising the two flips. A block walks its row from the
// end to the start in chunks of 512 x 8 elements.
constexpr int THREADS = 512;
constexpr int ITEMS = 8;

struct RunningTotal {
  float total;
  __device__ explicit RunningTotal(float t) : total(t) {}
  __device__ float operator()(float block_sum) {
    float old = total;
    total += block_sum;
    return old;
  }
};

__global__ void __launch_bounds__(THREADS) suffix_sum(const float* __restrict__ x,
                                                      float* __restrict__ y, int cols) {
  using Scan = cub::BlockScan<float, THREADS, cub::BLOCK_SCAN_WARP_SCANS>;
  __shared__ typename Scan::TempStorage tmp;
  const float* in = x + (size_t)blockIdx.x * cols;
  float* out = y + (size_t)blockIdx.x * cols;
  RunningTotal running(0.f);

  for (int end = cols; end > 0; end -= THREADS * ITEMS) {
    // thread t holds the elements [first, first + 8), thread 0 the last ones of the chunk
    const int first = end - (threadIdx.x + 1) * ITEMS;
    float v[ITEMS];
    if (first >= 0) {
      float4 a = *reinterpret_cast<const float4*>(in + first);
      float4 b = *reinterpret_cast<const float4*>(in + first + 4);
      v[7] = a.x; v[6] = a.y; v[5] = a.z; v[4] = a.w;
      v[3] = b.x; v[2] = b.y; v[1] = b.z; v[0] = b.w;
    } else {
#pragma unroll
      for (int i = 0; i < ITEMS; ++i) v[i] = 0.f;
    }
    Scan(tmp).InclusiveSum(v, v, running);
    if (first >= 0) {
      *reinterpret_cast<float4*>(out + first) = make_float4(v[7], v[6], v[5], v[4]);
      *reinterpret_cast<float4*>(out + first + 4) = make_float4(v[3], v[2], v[1], v[0]);
    }
    __syncthreads();
  }
}

torch::Tensor reverse_cumsum(torch::Tensor x) {
  TORCH_CHECK(x.is_cuda() && x.is_contiguous(), "contiguous CUDA tensor expected");
  auto y = torch::empty_like(x);
  const int cols = x.size(-1);
  const int rows = x.numel() / cols;
  suffix_sum<<<rows, THREADS, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), y.data_ptr<float>(), cols);
  return y;
}
"""

ext = load_inline(name="reverse_cumsum_cub",
                  cpp_sources="torch::Tensor reverse_cumsum(torch::Tensor x);",
                  cuda_sources=cuda_source, functions=["reverse_cumsum"],
                  extra_cuda_cflags=["-O3"], verbose=False)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        if self.dim % x.dim() == x.dim() - 1 and x.size(-1) % 8 == 0:
            return ext.reverse_cumsum(x.contiguous())
        return torch.cumsum(x.flip(self.dim), dim=self.dim).flip(self.dim)
