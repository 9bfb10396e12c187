import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_src = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

// Everything after the convolution, the channel bias included, in one pass:
//   out = mean over the window of tanh(conv + bias - s1), minus s2
// since subtracting a constant commutes with the mean.
template <int K>
__global__ void tanh_pool(const float* __restrict__ x, const float* __restrict__ bias,
                          float* __restrict__ out, int C, int H, int W, int OH, int OW,
                          float s1, float s2, int k_dyn) {
    const int k = K > 0 ? K : k_dyn;
    const int plane = blockIdx.y;
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= OH * OW) return;
    const int oh = i / OW, ow = i - oh * OW;
    const float b = __ldg(bias + plane % C) - s1;
    const float* p = x + (size_t)plane * H * W + (size_t)(oh * k) * W + ow * k;
    float s = 0.f;
    if (K == 2 && (W & 1) == 0) {
        float2 u = *reinterpret_cast<const float2*>(p);
        float2 v = *reinterpret_cast<const float2*>(p + W);
        s = tanhf(u.x + b) + tanhf(u.y + b) + tanhf(v.x + b) + tanhf(v.y + b);
    } else {
        for (int a = 0; a < k; ++a)
            for (int c = 0; c < k; ++c) s += tanhf(p[a * W + c] + b);
    }
    out[(size_t)plane * OH * OW + i] = s / (k * k) - s2;
}

torch::Tensor fused_tanh_pool(torch::Tensor x, torch::Tensor bias, double s1, double s2,
                              int64_t k) {
    const int N = x.size(0), C = x.size(1), H = x.size(2), W = x.size(3);
    const int OH = H / k, OW = W / k;
    auto out = torch::empty({N, C, OH, OW}, x.options());
    dim3 grid((OH * OW + 255) / 256, N * C);
    auto st = at::cuda::getCurrentCUDAStream();
    if (k == 2)
        tanh_pool<2><<<grid, 256, 0, st>>>(x.data_ptr<float>(), bias.data_ptr<float>(),
                                           out.data_ptr<float>(), C, H, W, OH, OW, s1, s2, 2);
    else
        tanh_pool<0><<<grid, 256, 0, st>>>(x.data_ptr<float>(), bias.data_ptr<float>(),
                                           out.data_ptr<float>(), C, H, W, OH, OW, s1, s2, (int)k);
    return out;
}
"""

cpp_src = """
torch::Tensor fused_tanh_pool(torch::Tensor x, torch::Tensor bias, double s1, double s2,
                              int64_t k);
"""

ext = load_inline(name="conv_tanh_pool_ext", cpp_sources=cpp_src, cuda_sources=cuda_src,
                  functions=["fused_tanh_pool"], extra_cuda_cflags=["-O3"], verbose=False)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, subtract1_value, subtract2_value,
                 kernel_size_pool):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.subtract1_value = subtract1_value
        self.subtract2_value = subtract2_value
        self.kernel_size_pool = kernel_size_pool

    def forward(self, x):
        y = torch.conv2d(x, self.conv.weight)
        return ext.fused_tanh_pool(y.contiguous(), self.conv.bias, self.subtract1_value,
                                   self.subtract2_value, self.kernel_size_pool)
