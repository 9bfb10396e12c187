import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

// Instance norm (no affine) and the division, one block per (n, c) plane. The plane is held in
// registers (1024 threads x 4 float4 >= 126 * 126 floats), so it is read once and written once.
constexpr int THREADS = 1024, VEC = 4;

__device__ __forceinline__ float block_sum(float v, float* sh) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
#pragma unroll
  for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
  if (lane == 0) sh[warp] = v;
  __syncthreads();
  v = sh[lane];
#pragma unroll
  for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}

__global__ void __launch_bounds__(THREADS) inorm_div(float4* __restrict__ y, int plane4,
                                                     float eps, float inv_div) {
  __shared__ float sh1[32], sh2[32];
  float4* p = y + (size_t)blockIdx.x * plane4;
  const float inv_n = 1.f / (plane4 * 4);
  float4 v[VEC];
  float s = 0.f;
#pragma unroll
  for (int i = 0; i < VEC; ++i) {
    int j = i * THREADS + threadIdx.x;
    v[i] = j < plane4 ? p[j] : make_float4(0.f, 0.f, 0.f, 0.f);
    s += (v[i].x + v[i].y) + (v[i].z + v[i].w);
  }
  const float mean = block_sum(s, sh1) * inv_n;
  float q = 0.f;
#pragma unroll
  for (int i = 0; i < VEC; ++i) {
    int j = i * THREADS + threadIdx.x;
    if (j < plane4) {
      v[i].x -= mean; v[i].y -= mean; v[i].z -= mean; v[i].w -= mean;
      q += v[i].x * v[i].x + v[i].y * v[i].y + v[i].z * v[i].z + v[i].w * v[i].w;
    }
  }
  const float k = rsqrtf(block_sum(q, sh2) * inv_n + eps) * inv_div;
#pragma unroll
  for (int i = 0; i < VEC; ++i) {
    int j = i * THREADS + threadIdx.x;
    if (j < plane4) p[j] = make_float4(v[i].x * k, v[i].y * k, v[i].z * k, v[i].w * k);
  }
}

void instance_norm_div(torch::Tensor y, double eps, double div) {
  const int plane = y.size(2) * y.size(3);
  TORCH_CHECK(plane % 4 == 0 && plane <= THREADS * VEC * 4, "plane does not fit the registers");
  inorm_div<<<y.size(0) * y.size(1), THREADS, 0, at::cuda::getCurrentCUDAStream()>>>(
      reinterpret_cast<float4*>(y.data_ptr<float>()), plane / 4, (float)eps, (float)(1.0 / div));
}
"""

ext = load_inline(name="inorm_div_inplace",
                  cpp_sources="void instance_norm_div(torch::Tensor y, double eps, double div);",
                  cuda_sources=cuda_source, functions=["instance_norm_div"],
                  extra_cuda_cflags=["-O3"], verbose=False)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, divide_by):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.instance_norm = nn.InstanceNorm2d(out_channels)
        self.divide_by = divide_by

    def forward(self, x):
        # A constant per channel does not survive the subtraction of the plane's mean, so the
        # convolution's bias is left out.
        y = F.conv2d(x, self.conv.weight).contiguous()
        ext.instance_norm_div(y, self.instance_norm.eps, self.divide_by)
        return y
