import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAGuard.h>
#include <ATen/cuda/CUDAContext.h>

// Direct 3x3x3 convolution, 3 input channels, 64 output channels, no padding, stride 1.
// Block: 4 output rows x 64 columns of one depth slice, all 64 channels.
// Thread: 4 neighbouring columns x 16 output channels.
#define CIN 3
#define OCN 64
#define TR 4
#define TC 64

__global__ void __launch_bounds__(256) conv3d_k3(
    const float* __restrict__ x, const float* __restrict__ w, const float* __restrict__ bias,
    float* __restrict__ y, int D, int H, int W, int OD, int OH, int OW) {
  __shared__ float sx[CIN][3][TR + 2][TC + 4];
  __shared__ __align__(16) float sw[CIN * 27][OCN];

  const int od = blockIdx.y % OD;
  const int w_tile = (blockIdx.y / OD) * TC;
  const int h_tile = blockIdx.x * TR;
  const int n = blockIdx.z;
  const int tid = threadIdx.x;

  for (int i = tid; i < CIN * 27 * OCN; i += 256) {
    int oc = i / (CIN * 27), k = i % (CIN * 27);
    sw[k][oc] = w[i];
  }
  for (int i = tid; i < CIN * 3 * (TR + 2) * (TC + 2); i += 256) {
    int col = i % (TC + 2);
    int t = i / (TC + 2);
    int r = t % (TR + 2);
    t /= (TR + 2);
    int kd = t % 3, c = t / 3;
    int ih = h_tile + r, iw = w_tile + col;
    float v = 0.f;
    if (ih < H && iw < W) v = x[(((size_t)n * CIN + c) * D + od + kd) * H * W + ih * W + iw];
    sx[c][kd][r][col] = v;
  }
  __syncthreads();

  const int tx = tid % 16, ty = (tid / 16) % 4, tz = tid / 64;
  const int oc0 = tz * 16;
  float acc[16][4] = {};

  for (int c = 0; c < CIN; ++c)
    for (int kd = 0; kd < 3; ++kd)
#pragma unroll
      for (int kh = 0; kh < 3; ++kh) {
        float in[6];
#pragma unroll
        for (int j = 0; j < 6; ++j) in[j] = sx[c][kd][ty + kh][tx * 4 + j];
#pragma unroll
        for (int kw = 0; kw < 3; ++kw) {
          const float4* wp =
              reinterpret_cast<const float4*>(&sw[((c * 3 + kd) * 3 + kh) * 3 + kw][oc0]);
#pragma unroll
          for (int q = 0; q < 4; ++q) {
            float4 v = wp[q];
#pragma unroll
            for (int j = 0; j < 4; ++j) {
              acc[q * 4 + 0][j] += v.x * in[j + kw];
              acc[q * 4 + 1][j] += v.y * in[j + kw];
              acc[q * 4 + 2][j] += v.z * in[j + kw];
              acc[q * 4 + 3][j] += v.w * in[j + kw];
            }
          }
        }
      }

  const int oh = h_tile + ty;
  if (oh >= OH) return;
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    float b = bias ? bias[oc0 + i] : 0.f;
    float* yr = y + ((((size_t)n * OCN + oc0 + i) * OD + od) * OH + oh) * OW;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      int ow = w_tile + tx * 4 + j;
      if (ow < OW) yr[ow] = acc[i][j] + b;
    }
  }
}

torch::Tensor conv3d_forward(torch::Tensor x, torch::Tensor w, c10::optional<torch::Tensor> bias) {
  const at::cuda::OptionalCUDAGuard guard(x.device());
  int N = x.size(0), D = x.size(2), H = x.size(3), W = x.size(4);
  int OD = D - 2, OH = H - 2, OW = W - 2;
  auto y = torch::empty({N, OCN, OD, OH, OW}, x.options());
  dim3 grid((OH + TR - 1) / TR, OD * ((OW + TC - 1) / TC), N);
  conv3d_k3<<<grid, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), w.data_ptr<float>(),
      bias.has_value() ? bias->data_ptr<float>() : nullptr, y.data_ptr<float>(),
      D, H, W, OD, OH, OW);
  return y;
}
"""
cpp_source = ("torch::Tensor conv3d_forward(torch::Tensor x, torch::Tensor w, "
              "c10::optional<torch::Tensor> bias);")

conv3d_ext = load_inline(name="conv3d_direct_k3", cpp_sources=cpp_source,
                         cuda_sources=cuda_source, functions=["conv3d_forward"],
                         extra_cuda_cflags=["-O3", "--use_fast_math"], verbose=False)


class ModelNew(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1,
                 padding: int = 0, dilation: int = 1, groups: int = 1, bias: bool = False):
        super().__init__()
        self.conv3d = nn.Conv3d(in_channels, out_channels, (kernel_size,) * 3, stride=stride,
                                padding=padding, dilation=dilation, groups=groups, bias=bias)
        self.fast = (in_channels == 3 and out_channels == 64 and kernel_size == 3 and stride == 1
                     and padding == 0 and dilation == 1 and groups == 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.fast:
            return self.conv3d(x)
        return conv3d_ext.conv3d_forward(x.contiguous(), self.conv3d.weight.contiguous(),
                                         self.conv3d.bias)
