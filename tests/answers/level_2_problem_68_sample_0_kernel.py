import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

// min(v, c) - c == min(v - c, 0). The constant is a parameter on the device: it is read there,
// so that the host never waits.
__global__ void min_sub(float4* __restrict__ x, const float* __restrict__ constant, long n4) {
    const float c = __ldg(constant);
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i >= n4) return;
    float4 v = x[i];
    v.x = fminf(v.x, c) - c;
    v.y = fminf(v.y, c) - c;
    v.z = fminf(v.z, c) - c;
    v.w = fminf(v.w, c) - c;
    x[i] = v;
}

torch::Tensor linear_min_sub(torch::Tensor x, torch::Tensor w, torch::Tensor b,
                             torch::Tensor constant) {
    auto y = at::addmm(b, x, w.t());
    long n4 = y.numel() / 4;
    TORCH_CHECK(y.numel() % 4 == 0);
    min_sub<<<(n4 + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
        reinterpret_cast<float4*>(y.data_ptr<float>()), constant.data_ptr<float>(), n4);
    return y;
}
"""

cpp_source = """
torch::Tensor linear_min_sub(torch::Tensor x, torch::Tensor w, torch::Tensor b,
                             torch::Tensor constant);
"""

ext = load_inline(name="linear_min_sub_ext", cpp_sources=cpp_source, cuda_sources=cuda_source,
                  functions=["linear_min_sub"], verbose=False)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, constant):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.constant = nn.Parameter(torch.tensor(constant))

    def forward(self, x):
        return ext.linear_min_sub(x, self.linear.weight, self.linear.bias, self.constant)
