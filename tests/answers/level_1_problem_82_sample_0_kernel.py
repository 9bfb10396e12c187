import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

// Depthwise 3x3, stride 1, no padding. Each thread walks down ROWS output rows with four
// columns, keeping the three input rows it needs in registers (rolling window).
constexpr int ROWS = 16;

__device__ __forceinline__ void load6(const float* __restrict__ p, int col, int W, float* r) {
  float4 a = *reinterpret_cast<const float4*>(p + col);
  r[0] = a.x; r[1] = a.y; r[2] = a.z; r[3] = a.w;
  if (col + 4 < W) {
    float2 b = *reinterpret_cast<const float2*>(p + col + 4);
    r[4] = b.x; r[5] = b.y;
  } else {
    r[4] = 0.f; r[5] = 0.f;
  }
}

__global__ void dw3x3(const float* __restrict__ x, const float* __restrict__ w,
                      const float* __restrict__ bias, float* __restrict__ y,
                      int C, int H, int W, int OH, int OW) {
  const int plane = blockIdx.z;
  const int c = plane % C;
  const int col = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
  const int row0 = blockIdx.y * ROWS;
  if (col >= OW) return;

  float k[9];
#pragma unroll
  for (int i = 0; i < 9; ++i) k[i] = __ldg(w + c * 9 + i);
  const float b = bias ? __ldg(bias + c) : 0.f;

  const float* xp = x + (size_t)plane * H * W;
  float* yp = y + (size_t)plane * OH * OW;
  float r[3][6];
  load6(xp + (size_t)row0 * W, col, W, r[0]);
  load6(xp + (size_t)(row0 + 1) * W, col, W, r[1]);

#pragma unroll
  for (int i = 0; i < ROWS; ++i) {
    const int oh = row0 + i;
    if (oh >= OH) break;
    load6(xp + (size_t)(oh + 2) * W, col, W, r[(i + 2) % 3]);
    float o[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      float s = b;
#pragma unroll
      for (int kh = 0; kh < 3; ++kh)
#pragma unroll
        for (int kw = 0; kw < 3; ++kw) s = fmaf(r[(i + kh) % 3][j + kw], k[kh * 3 + kw], s);
      o[j] = s;
    }
    float* dst = yp + (size_t)oh * OW + col;
    *reinterpret_cast<float2*>(dst) = make_float2(o[0], o[1]);
    if (col + 2 < OW) *reinterpret_cast<float2*>(dst + 2) = make_float2(o[2], o[3]);
  }
}

torch::Tensor dwconv(torch::Tensor x, torch::Tensor w, c10::optional<torch::Tensor> bias) {
  int N = x.size(0), C = x.size(1), H = x.size(2), W = x.size(3);
  int OH = H - 2, OW = W - 2;
  auto y = torch::empty({N, C, OH, OW}, x.options());
  const int threads = 128;
  dim3 grid(((OW + 3) / 4 + threads - 1) / threads, (OH + ROWS - 1) / ROWS, N * C);
  dw3x3<<<grid, threads, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), w.data_ptr<float>(), bias ? bias->data_ptr<float>() : nullptr,
      y.data_ptr<float>(), C, H, W, OH, OW);
  return y;
}
"""
cpp_source = """
torch::Tensor dwconv(torch::Tensor x, torch::Tensor w, c10::optional<torch::Tensor> bias);
"""

dw = load_inline(name="dw3x3_rolling", cpp_sources=cpp_source, cuda_sources=cuda_source,
                 functions=["dwconv"], extra_cuda_cflags=["-O3"], verbose=False)


class ModelNew(nn.Module):
    def __init__(self, in_channels: int, kernel_size: int, stride: int = 1, padding: int = 0,
                 bias: bool = False):
        super().__init__()
        self.conv2d = nn.Conv2d(in_channels, in_channels, kernel_size, stride=stride,
                                padding=padding, groups=in_channels, bias=bias)
        self.fast = kernel_size == 3 and stride == 1 and padding == 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # float4 loads need rows of a multiple of four
        if self.fast and x.shape[-1] % 4 == 0:
            return dw.dwconv(x.contiguous(), self.conv2d.weight.contiguous(), self.conv2d.bias)
        return self.conv2d(x)
