import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

// mish(x) = x * tanh(log(1 + e^x)) = x * n / (n + 2) with n = e^x * (e^x + 2)
__device__ __forceinline__ float mish(float x) {
  float e = __expf(fminf(x, 20.f));
  float n = e * (e + 2.f);
  return x > 20.f ? x : x * __fdividef(n, n + 2.f);
}

__device__ __forceinline__ float mish2(float x) { return mish(mish(x)); }

__global__ void __launch_bounds__(256) bias_mish_mish(const float4* __restrict__ in,
                                                      float4* __restrict__ out,
                                                      const float* __restrict__ bias,
                                                      int C, int plane4, long total4) {
  long i = (long)blockIdx.x * blockDim.x + threadIdx.x;
  const long stride = (long)gridDim.x * blockDim.x;
  for (; i < total4; i += stride) {
    const int c = (int)((i / plane4) % C);
    const float b = __ldg(bias + c);
    float4 v = in[i];
    v.x = mish2(v.x + b);
    v.y = mish2(v.y + b);
    v.z = mish2(v.z + b);
    v.w = mish2(v.w + b);
    out[i] = v;
  }
}

torch::Tensor mish_mish(torch::Tensor x, torch::Tensor bias) {
  const int plane = x.size(2) * x.size(3);
  TORCH_CHECK(plane % 4 == 0);
  const long total4 = x.numel() / 4;
  const int blocks = (int)std::min<long>((total4 + 255) / 256, 132L * 32);
  float4* p = reinterpret_cast<float4*>(x.data_ptr<float>());
  bias_mish_mish<<<blocks, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      p, p, bias.data_ptr<float>(), x.size(1), plane / 4, total4);
  return x;
}
"""

ops = load_inline(name="bias_mish_mish_ops",
                  cpp_sources="torch::Tensor mish_mish(torch::Tensor x, torch::Tensor bias);",
                  cuda_sources=cuda_source, functions=["mish_mish"],
                  extra_cuda_cflags=["-O3", "--use_fast_math"], verbose=False)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)

    def forward(self, x):
        y = F.conv2d(x, self.conv.weight)          # the bias is added in the fused pass
        return ops.mish_mish(y, self.conv.bias)
