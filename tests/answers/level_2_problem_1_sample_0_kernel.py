import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

// y = relu(y + conv_bias[c]) + bias[c], in place on the convolution's output
__global__ void bias_relu_bias(float4* __restrict__ y, const float* __restrict__ cb,
                               const float* __restrict__ b, int C, int plane4) {
  const int plane = blockIdx.x;
  const int c = plane % C;
  const float b0 = __ldg(cb + c), b1 = __ldg(b + c);
  float4* p = y + (size_t)plane * plane4;
  for (int i = threadIdx.x; i < plane4; i += blockDim.x) {
    float4 v = p[i];
    v.x = fmaxf(v.x + b0, 0.f) + b1;
    v.y = fmaxf(v.y + b0, 0.f) + b1;
    v.z = fmaxf(v.z + b0, 0.f) + b1;
    v.w = fmaxf(v.w + b0, 0.f) + b1;
    p[i] = v;
  }
}

torch::Tensor conv_relu_bias(torch::Tensor x, torch::Tensor w, torch::Tensor cb,
                             torch::Tensor b) {
  const at::cuda::OptionalCUDAGuard guard(x.device());
  auto y = at::conv2d(x, w).contiguous();
  const int C = y.size(1);
  const int plane = y.size(2) * y.size(3);
  TORCH_CHECK(plane % 4 == 0, "plane size must be a multiple of 4");
  bias_relu_bias<<<y.size(0) * C, 512, 0, at::cuda::getCurrentCUDAStream()>>>(
      reinterpret_cast<float4*>(y.data_ptr<float>()), cb.data_ptr<float>(),
      b.data_ptr<float>(), C, plane / 4);
  return y;
}
"""

cpp_source = """
torch::Tensor conv_relu_bias(torch::Tensor x, torch::Tensor w, torch::Tensor cb,
                             torch::Tensor b);
"""

fused = load_inline(name="conv_relu_bias_fused", cpp_sources=cpp_source,
                    cuda_sources=cuda_source, functions=["conv_relu_bias"], verbose=False)


class ModelNew(nn.Module):
    """cuDNN convolution without its bias, then one pass for bias, ReLU and the second bias."""

    def __init__(self, in_channels, out_channels, kernel_size, bias_shape):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        return fused.conv_relu_bias(x, self.conv.weight, self.conv.bias, self.bias)
