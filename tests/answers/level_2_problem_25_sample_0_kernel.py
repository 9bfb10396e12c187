import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

// Convolution (16 -> 64, 3x3), minimum over the 64 channels and two tanh in one kernel: the
// 64-channel tensor never exists in memory. The weights sit in constant memory (all threads of
// a warp read the same one), the input tile in shared memory.
constexpr int IC = 16, OC = 64, TH = 8, TW = 64, LD = TW + 4;
__constant__ float cw[IC * 9 * OC];      // [ic][kh][kw][oc]

__global__ void __launch_bounds__(128) conv_min_tanh(const float* __restrict__ x,
                                                     const float* __restrict__ bias,
                                                     float* __restrict__ y, int H, int W, int OH,
                                                     int OW) {
  __shared__ float s[IC][TH + 2][LD];
  const int n = blockIdx.z, oh0 = blockIdx.y * TH, ow0 = blockIdx.x * TW;
  for (int i = threadIdx.x; i < IC * (TH + 2) * (TW + 2); i += 128) {
    int col = i % (TW + 2), r = (i / (TW + 2)) % (TH + 2), c = i / ((TW + 2) * (TH + 2));
    int ih = oh0 + r, iw = ow0 + col;
    s[c][r][col] = (ih < H && iw < W) ? x[((size_t)(n * IC + c) * H + ih) * W + iw] : 0.f;
  }
  __syncthreads();

  const int tx = threadIdx.x & 15, ty = threadIdx.x >> 4;
  float best[4] = {INFINITY, INFINITY, INFINITY, INFINITY};
  for (int o0 = 0; o0 < OC; o0 += 8) {
    float acc[8][4];
#pragma unroll
    for (int o = 0; o < 8; ++o) {
      float b = __ldg(bias + o0 + o);
#pragma unroll
      for (int j = 0; j < 4; ++j) acc[o][j] = b;
    }
    for (int c = 0; c < IC; ++c)
#pragma unroll
      for (int kh = 0; kh < 3; ++kh) {
        float in[6];
#pragma unroll
        for (int j = 0; j < 6; ++j) in[j] = s[c][ty + kh][tx * 4 + j];
#pragma unroll
        for (int kw = 0; kw < 3; ++kw)
#pragma unroll
          for (int o = 0; o < 8; ++o) {
            const float wv = cw[((c * 3 + kh) * 3 + kw) * OC + o0 + o];
#pragma unroll
            for (int j = 0; j < 4; ++j) acc[o][j] = fmaf(in[j + kw], wv, acc[o][j]);
          }
      }
#pragma unroll
    for (int o = 0; o < 8; ++o)
#pragma unroll
      for (int j = 0; j < 4; ++j) best[j] = fminf(best[j], acc[o][j]);
  }
  const int oh = oh0 + ty;
  if (oh >= OH) return;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    int ow = ow0 + tx * 4 + j;
    if (ow < OW) y[((size_t)n * OH + oh) * OW + ow] = tanhf(tanhf(best[j]));
  }
}

torch::Tensor forward(torch::Tensor x, torch::Tensor wt, torch::Tensor bias) {
  TORCH_CHECK(x.size(1) == IC && wt.numel() == IC * 9 * OC, "unexpected shape");
  int N = x.size(0), H = x.size(2), W = x.size(3), OH = H - 2, OW = W - 2;
  auto stream = at::cuda::getCurrentCUDAStream();
  auto y = torch::empty({N, 1, OH, OW}, x.options());
  cudaMemcpyToSymbolAsync(cw, wt.data_ptr<float>(), sizeof(float) * IC * 9 * OC, 0,
                          cudaMemcpyDeviceToDevice, stream);
  dim3 grid((OW + TW - 1) / TW, (OH + TH - 1) / TH, N);
  conv_min_tanh<<<grid, 128, 0, stream>>>(x.data_ptr<float>(), bias.data_ptr<float>(),
                                          y.data_ptr<float>(), H, W, OH, OW);
  return y;
}
"""

ext = load_inline(name="conv_min_tanh_const",
                  cpp_sources="torch::Tensor forward(torch::Tensor x, torch::Tensor wt, "
                              "torch::Tensor bias);",
                  cuda_sources=cuda_source, functions=["forward"],
                  extra_cuda_cflags=["-O3"], verbose=False)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)

    def forward(self, x):
        wt = self.conv.weight.permute(1, 2, 3, 0).contiguous()
        return ext.forward(x.contiguous(), wt, self.conv.bias)
