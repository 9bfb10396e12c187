import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

// Transposed convolution, stride 1, padding 0, 3x3, 32 -> 32 channels, as a gather:
//   y[oc][oh][ow] = sum_{ic,kh,kw} x[ic][oh-kh][ow-kw] * w[ic][oc][kh][kw]
// Block: 8 x 32 output pixels, all 32 channels. Thread: 4 columns x 8 channels.
constexpr int CH = 32, CK = 8, TH = 8, TW = 32;

__global__ void __launch_bounds__(256) convt_kernel(
    const float* __restrict__ x, const float* __restrict__ w, const float* __restrict__ bias,
    float* __restrict__ y, int H, int W, int OH, int OW) {
  __shared__ float sx[CK][TH + 2][TW + 3];
  __shared__ __align__(16) float sw[CK][9][CH];
  const int tid = threadIdx.x;
  const int tx = tid & 7, ty = (tid >> 3) & 7, tz = tid >> 6;
  const int ow0 = blockIdx.x * TW, oh0 = blockIdx.y * TH, n = blockIdx.z;

  float acc[8][4];
#pragma unroll
  for (int i = 0; i < 8; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) acc[i][j] = 0.f;

  for (int c0 = 0; c0 < CH; c0 += CK) {
    for (int i = tid; i < CK * (TH + 2) * (TW + 2); i += 256) {
      int col = i % (TW + 2), r = (i / (TW + 2)) % (TH + 2), c = i / ((TW + 2) * (TH + 2));
      int ih = oh0 - 2 + r, iw = ow0 - 2 + col;
      bool ok = (unsigned)ih < (unsigned)H && (unsigned)iw < (unsigned)W;
      sx[c][r][col] = ok ? x[((size_t)(n * CH + c0 + c) * H + ih) * W + iw] : 0.f;
    }
    for (int i = tid; i < CK * CH * 9; i += 256) {
      int k = i % 9, oc = (i / 9) % CH, c = i / (9 * CH);
      sw[c][k][oc] = w[(size_t)c0 * CH * 9 + i];
    }
    __syncthreads();

#pragma unroll 2
    for (int c = 0; c < CK; ++c) {
#pragma unroll
      for (int kh = 0; kh < 3; ++kh) {
        float in[6];
#pragma unroll
        for (int j = 0; j < 6; ++j) in[j] = sx[c][ty + 2 - kh][tx * 4 + j];
#pragma unroll
        for (int kw = 0; kw < 3; ++kw) {
          float4 a = *reinterpret_cast<const float4*>(&sw[c][kh * 3 + kw][tz * 8]);
          float4 b = *reinterpret_cast<const float4*>(&sw[c][kh * 3 + kw][tz * 8 + 4]);
          float wv[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
#pragma unroll
          for (int i = 0; i < 8; ++i)
#pragma unroll
            for (int j = 0; j < 4; ++j) acc[i][j] += wv[i] * in[j + 2 - kw];
        }
      }
    }
    __syncthreads();
  }

  const int oh = oh0 + ty;
  if (oh >= OH) return;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    int oc = tz * 8 + i;
    float b = bias != nullptr ? bias[oc] : 0.f;
    float* yr = y + ((size_t)(n * CH + oc) * OH + oh) * OW;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      int ow = ow0 + tx * 4 + j;
      if (ow < OW) yr[ow] = acc[i][j] + b;
    }
  }
}

torch::Tensor conv_transpose(torch::Tensor x, torch::Tensor w, torch::Tensor bias) {
  int N = x.size(0), H = x.size(2), W = x.size(3), OH = H + 2, OW = W + 2;
  auto y = torch::empty({N, CH, OH, OW}, x.options());
  dim3 grid((OW + TW - 1) / TW, (OH + TH - 1) / TH, N);
  const float* b = bias.numel() ? bias.data_ptr<float>() : nullptr;
  convt_kernel<<<grid, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), w.data_ptr<float>(), b, y.data_ptr<float>(), H, W, OH, OW);
  return y;
}
"""

cpp_source = """
torch::Tensor conv_transpose(torch::Tensor x, torch::Tensor w, torch::Tensor bias);
"""

ext = load_inline(name="convt2d_gather", cpp_sources=cpp_source, cuda_sources=cuda_source,
                  functions=["conv_transpose"], extra_cuda_cflags=["-O3"], verbose=False)


class ModelNew(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1,
                 padding: int = 0, output_padding: int = 0, groups: int = 1, bias: bool = False):
        super().__init__()
        self.conv_transpose2d = nn.ConvTranspose2d(
            in_channels, out_channels, kernel_size, stride=stride, padding=padding,
            output_padding=output_padding, groups=groups, bias=bias)
        self.special = (in_channels == 32 and out_channels == 32 and kernel_size == 3
                        and stride == 1 and padding == 0 and output_padding == 0 and groups == 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        m = self.conv_transpose2d
        if not self.special:
            return m(x)
        bias = m.bias if m.bias is not None else x.new_empty(0)
        return ext.conv_transpose(x.contiguous(), m.weight.contiguous(), bias)
