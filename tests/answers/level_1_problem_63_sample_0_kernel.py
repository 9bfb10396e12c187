import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

# Implicit GEMM on the tensor cores (mma.sync m16n8k8, TF32, FP32 accumulation).
# M = 128 output channels, N = 128 output columns of one row, K = 16 channels x 9 taps.

cuda_src = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <stdint.h>

constexpr int IC = 16, OC = 128, TW = 128, LD = 136;

__device__ __forceinline__ float to_tf32(float v) {
  uint32_t r;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(v));
  return __uint_as_float(r);
}

__device__ __forceinline__ void mma(float* c, float4 a, float b0, float b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
      "{%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(__float_as_uint(a.x)), "r"(__float_as_uint(a.y)), "r"(__float_as_uint(a.z)),
        "r"(__float_as_uint(a.w)), "r"(__float_as_uint(b0)), "r"(__float_as_uint(b1)));
}

// wp[kstep = tap*2+half][mtile][lane] = the four A values of that lane
__global__ void pack_weight(const float* __restrict__ w, float4* __restrict__ wp) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 18 * 8 * 32) return;
  int lane = i & 31, m = (i >> 5) & 7, ks = i >> 8;
  int tap = ks >> 1, c = (ks & 1) * 8 + (lane & 3), r = m * 16 + (lane >> 2);
  auto at = [&](int oc, int ic) { return to_tf32(w[(oc * IC + ic) * 9 + tap]); };
  wp[i] = make_float4(at(r, c), at(r + 8, c), at(r, c + 4), at(r + 8, c + 4));
}

__global__ void __launch_bounds__(256) conv_mma(
    const float* __restrict__ x, const float4* __restrict__ wp, float* __restrict__ y,
    int H, int W, int OH, int OW) {
  __shared__ float s[IC * 3 * LD];
  const int n = blockIdx.z, oh = blockIdx.y, ow0 = blockIdx.x * TW;
  for (int row = threadIdx.x / 32; row < IC * 3; row += 8) {
    int c = row / 3, kh = row % 3;
    const float* src = x + (((size_t)n * IC + c) * H + oh + kh) * W;
    for (int j = threadIdx.x & 31; j < TW + 2; j += 32) {
      int iw = ow0 + j;
      s[row * LD + j] = iw < W ? to_tf32(src[iw]) : 0.f;
    }
  }
  __syncthreads();

  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const int wm = warp & 3, wn = warp >> 2;   // 4 x 32 channels, 2 x 64 columns
  const int g = lane >> 2, t = lane & 3;
  float acc[2][8][4] = {};

#pragma unroll
  for (int tap = 0; tap < 9; ++tap) {
    const int kh = tap / 3, kw = tap % 3;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float4* a = wp + ((tap * 2 + half) * 8 + wm * 2) * 32 + lane;
      float4 a0 = __ldg(a), a1 = __ldg(a + 32);
      const float* b = s + ((half * 8 + t) * 3 + kh) * LD + wn * 64 + g + kw;
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        float b0 = b[j * 8], b1 = b[j * 8 + 12 * LD];
        mma(acc[0][j], a0, b0, b1);
        mma(acc[1][j], a1, b0, b1);
      }
    }
  }

#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      int oc = wm * 32 + i * 16 + g, ow = ow0 + wn * 64 + j * 8 + t * 2;
      if (ow < OW) {             // OW is even, so pairs are whole and 8-byte aligned
        size_t o = (((size_t)n * OC + oc) * OH + oh) * OW + ow;
        *reinterpret_cast<float2*>(y + o) = make_float2(acc[i][j][0], acc[i][j][1]);
        o += (size_t)8 * OH * OW;
        *reinterpret_cast<float2*>(y + o) = make_float2(acc[i][j][2], acc[i][j][3]);
      }
    }
}

torch::Tensor conv_forward(torch::Tensor x, torch::Tensor w) {
  int N = x.size(0), H = x.size(2), W = x.size(3), OH = H - 2, OW = W - 2;
  auto stream = at::cuda::getCurrentCUDAStream();
  auto wp = torch::empty({18 * 8 * 32 * 4}, x.options());
  auto y = torch::empty({N, OC, OH, OW}, x.options());
  pack_weight<<<18, 256, 0, stream>>>(w.data_ptr<float>(), (float4*)wp.data_ptr<float>());
  dim3 grid((OW + TW - 1) / TW, OH, N);
  conv_mma<<<grid, 256, 0, stream>>>(x.data_ptr<float>(), (const float4*)wp.data_ptr<float>(),
                                     y.data_ptr<float>(), H, W, OH, OW);
  return y;
}
"""

module = load_inline(name="conv2d_tf32_mma",
                     cpp_sources="torch::Tensor conv_forward(torch::Tensor x, torch::Tensor w);",
                     cuda_sources=cuda_src, functions=["conv_forward"],
                     extra_cuda_cflags=["-O3"], verbose=False)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1,
                 groups=1, bias=False):
        super().__init__()
        self.conv2d = nn.Conv2d(in_channels, out_channels, (kernel_size, kernel_size),
                                stride=stride, padding=padding, dilation=dilation, groups=groups,
                                bias=bias)
        self.use_kernel = ((in_channels, out_channels, kernel_size) == (16, 128, 3) and
                           (stride, padding, dilation, groups) == (1, 0, 1, 1) and not bias)

    def forward(self, x):
        if self.use_kernel and x.size(3) % 2 == 0:
            return module.conv_forward(x.contiguous(), self.conv2d.weight.contiguous())
        return self.conv2d(x)
