import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

// bias + relu + 3x3 stride 2 max pool. max and relu commute with adding the channel's bias, so the
// nine loads are reduced first.
__global__ void bias_relu_pool(const float* __restrict__ x, const float* __restrict__ bias,
                               float* __restrict__ out, int C, int H, int W, int OH, int OW) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= OH * OW) return;
    const int oy = i / OW, ox = i % OW;
    const size_t plane = blockIdx.y + (size_t)blockIdx.z * C;
    const float* p = x + plane * H * W + (size_t)oy * 2 * W + ox * 2;
    float m = p[0];
#pragma unroll
    for (int r = 0; r < 3; ++r)
#pragma unroll
        for (int c = 0; c < 3; ++c) m = fmaxf(m, p[r * W + c]);
    out[plane * OH * OW + i] = fmaxf(m + __ldg(bias + blockIdx.y), 0.f);
}

__global__ void bias_relu(float* __restrict__ x, const float* __restrict__ bias, int C, int HW) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= HW) return;
    float* p = x + (blockIdx.y + (size_t)blockIdx.z * C) * HW + i;
    *p = fmaxf(*p + __ldg(bias + blockIdx.y), 0.f);
}

torch::Tensor relu_pool(torch::Tensor x, torch::Tensor bias) {
    x = x.contiguous();
    const int N = x.size(0), C = x.size(1), H = x.size(2), W = x.size(3);
    const int OH = (H - 3) / 2 + 1, OW = (W - 3) / 2 + 1;
    auto out = torch::empty({N, C, OH, OW}, x.options());
    const int t = OH * OW >= 256 ? 256 : 64;
    bias_relu_pool<<<dim3((OH * OW + t - 1) / t, C, N), t, 0, at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), bias.data_ptr<float>(), out.data_ptr<float>(), C, H, W, OH, OW);
    return out;
}

torch::Tensor relu_bias(torch::Tensor x, torch::Tensor bias) {
    x = x.contiguous();
    const int N = x.size(0), C = x.size(1), HW = x.size(2) * x.size(3);
    bias_relu<<<dim3((HW + 191) / 192, C, N), 192, 0, at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), bias.data_ptr<float>(), C, HW);
    return x;
}
"""

cpp_source = """
torch::Tensor relu_pool(torch::Tensor x, torch::Tensor bias);
torch::Tensor relu_bias(torch::Tensor x, torch::Tensor bias);
"""

ext = load_inline(name="alexnet_parts_ext", cpp_sources=cpp_source, cuda_sources=cuda_source,
                  functions=["relu_pool", "relu_bias"], verbose=False)


class ModelNew(nn.Module):
    def __init__(self, num_classes=1000):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 96, kernel_size=11, stride=4, padding=2)
        self.conv2 = nn.Conv2d(96, 256, kernel_size=5, padding=2)
        self.conv3 = nn.Conv2d(256, 384, kernel_size=3, padding=1)
        self.conv4 = nn.Conv2d(384, 384, kernel_size=3, padding=1)
        self.conv5 = nn.Conv2d(384, 256, kernel_size=3, padding=1)
        self.fc1 = nn.Linear(256 * 6 * 6, 4096)
        self.fc2 = nn.Linear(4096, 4096)
        self.fc3 = nn.Linear(4096, num_classes)

    @staticmethod
    def _conv(m, x):
        return torch.conv2d(x, m.weight, None, m.stride, m.padding)

    @torch.no_grad()
    def forward(self, x):
        x = ext.relu_pool(self._conv(self.conv1, x), self.conv1.bias)
        x = ext.relu_pool(self._conv(self.conv2, x), self.conv2.bias)
        x = ext.relu_bias(self._conv(self.conv3, x), self.conv3.bias)
        x = ext.relu_bias(self._conv(self.conv4, x), self.conv4.bias)
        x = ext.relu_pool(self._conv(self.conv5, x), self.conv5.bias)
        x = torch.flatten(x, 1)
        # The dropouts have p = 0.0: they are the identity.
        x = torch._addmm_activation(self.fc1.bias, x, self.fc1.weight.t())
        x = torch._addmm_activation(self.fc2.bias, x, self.fc2.weight.t())
        return torch.addmm(self.fc3.bias, x, self.fc3.weight.t())
