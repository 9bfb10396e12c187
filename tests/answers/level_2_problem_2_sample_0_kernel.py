import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

// clamp(clamp(v, 0, 1) * s, 0, 1) / s
__device__ __forceinline__ float post(float v, float b, float s) {
  v = fminf(fmaxf(v + b, 0.f), 1.f) * s;
  return fminf(fmaxf(v, 0.f), 1.f) / s;
}

__global__ void __launch_bounds__(256) epilogue(float4* __restrict__ y,
                                                const float* __restrict__ conv_bias,
                                                const float* __restrict__ bias, float s,
                                                int C, int plane4) {
  const int c = blockIdx.y % C;
  const float b = __ldg(conv_bias + c) + __ldg(bias + c);
  float4* p = y + (size_t)blockIdx.y * plane4;
  const int base = blockIdx.x * 1024 + threadIdx.x;
  float4 v[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (base + i * 256 < plane4) v[i] = p[base + i * 256];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    v[i].x = post(v[i].x, b, s);
    v[i].y = post(v[i].y, b, s);
    v[i].z = post(v[i].z, b, s);
    v[i].w = post(v[i].w, b, s);
    if (base + i * 256 < plane4) p[base + i * 256] = v[i];
  }
}

void apply_epilogue(torch::Tensor y, torch::Tensor conv_bias, torch::Tensor bias, double s) {
  const int planes = y.size(0) * y.size(1);
  const int plane4 = y.size(2) * y.size(3) / 4;
  dim3 grid((plane4 + 1023) / 1024, planes);
  epilogue<<<grid, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      reinterpret_cast<float4*>(y.data_ptr<float>()), conv_bias.data_ptr<float>(),
      bias.data_ptr<float>(), (float)s, y.size(1), plane4);
}
"""

cpp_source = """
void apply_epilogue(torch::Tensor y, torch::Tensor conv_bias, torch::Tensor bias, double s);
"""

ext = load_inline(name="convt_clamp_epilogue", cpp_sources=cpp_source, cuda_sources=cuda_source,
                  functions=["apply_epilogue"], extra_cuda_cflags=["-O3"], verbose=False)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, output_padding,
                 bias_shape, scaling_factor):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose2d(in_channels, out_channels, kernel_size,
                                                 stride=stride, padding=padding,
                                                 output_padding=output_padding)
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scaling_factor = scaling_factor

    def forward(self, x):
        m = self.conv_transpose
        y = F.conv_transpose2d(x, m.weight, None, m.stride, m.padding, m.output_padding)
        y = y.contiguous()
        ext.apply_epilogue(y, m.bias, self.bias, float(self.scaling_factor))
        return y
