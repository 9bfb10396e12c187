import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

# sum_j (x @ W^T)[i, j] / 2 * s = s / 2 * (x[i] . sum_j W[j]): the GEMM followed by the row sum is
# one column sum of W and one matrix-vector product.

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

constexpr int ROWS = 64;

__global__ void __launch_bounds__(256) column_sum(const float4* __restrict__ w,
                                                  float* __restrict__ out, int rows, int cols4) {
  const int c = blockIdx.x * 256 + threadIdx.x;
  if (c >= cols4) return;
  const int r0 = blockIdx.y * ROWS, r1 = min(rows, r0 + ROWS);
  float4 s = make_float4(0.f, 0.f, 0.f, 0.f);
#pragma unroll 8
  for (int r = r0; r < r1; ++r) {
    float4 v = __ldg(w + (size_t)r * cols4 + c);
    s.x += v.x; s.y += v.y; s.z += v.z; s.w += v.w;
  }
  atomicAdd(out + c * 4 + 0, s.x);
  atomicAdd(out + c * 4 + 1, s.y);
  atomicAdd(out + c * 4 + 2, s.z);
  atomicAdd(out + c * 4 + 3, s.w);
}

__global__ void __launch_bounds__(256) row_dot(const float4* __restrict__ x,
                                               const float4* __restrict__ v,
                                               float* __restrict__ y, int cols4, float scale) {
  const float4* xr = x + (size_t)blockIdx.x * cols4;
  float s = 0.f;
  for (int i = threadIdx.x; i < cols4; i += 256) {
    float4 a = xr[i], b = __ldg(v + i);
    s += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
  }
#pragma unroll
  for (int d = 16; d > 0; d >>= 1) s += __shfl_xor_sync(0xffffffffu, s, d);
  __shared__ float sh[8];
  if ((threadIdx.x & 31) == 0) sh[threadIdx.x >> 5] = s;
  __syncthreads();
  if (threadIdx.x == 0) {
#pragma unroll
    for (int i = 1; i < 8; ++i) s += sh[i];
    y[blockIdx.x] = s * scale;
  }
}

torch::Tensor gemm_sum(torch::Tensor x, torch::Tensor w, double scale) {
  const int B = x.size(0), K = x.size(1), N = w.size(0);
  TORCH_CHECK(K % 4 == 0, "input size must be a multiple of 4");
  auto stream = at::cuda::getCurrentCUDAStream();
  auto v = torch::zeros({K}, x.options());
  auto y = torch::empty({B, 1}, x.options());
  dim3 grid((K / 4 + 255) / 256, (N + ROWS - 1) / ROWS);
  column_sum<<<grid, 256, 0, stream>>>(reinterpret_cast<const float4*>(w.data_ptr<float>()),
                                       v.data_ptr<float>(), N, K / 4);
  row_dot<<<B, 256, 0, stream>>>(reinterpret_cast<const float4*>(x.data_ptr<float>()),
                                 reinterpret_cast<const float4*>(v.data_ptr<float>()),
                                 y.data_ptr<float>(), K / 4, (float)scale);
  return y;
}
"""

cpp_source = "torch::Tensor gemm_sum(torch::Tensor x, torch::Tensor w, double scale);"

ext = load_inline(name="gemm_divide_sum", cpp_sources=cpp_source, cuda_sources=cuda_source,
                  functions=["gemm_sum"], extra_cuda_cflags=["-O3"], verbose=False)


class ModelNew(nn.Module):
    def __init__(self, input_size, hidden_size, scaling_factor):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(hidden_size, input_size))
        self.scaling_factor = scaling_factor

    def forward(self, x):
        return ext.gemm_sum(x.contiguous(), self.weight, self.scaling_factor * 0.5)
