import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

// mish(x) = x * tanh(log(1 + e^x)). With e = e^x and n = e * (e + 2) this is x * n / (n + 2):
// one exponential and one division in place of exp + log1p + tanh.
__device__ __forceinline__ float mish(float x) {
    if (x > 20.f) return x;
    float e = __expf(x);
    float n = e * (e + 2.f);
    return x * __fdividef(n, n + 2.f);
}

__device__ __forceinline__ float mish2(float x) { return mish(mish(x)); }

__global__ void bias_mish_mish(float4* __restrict__ x, const float4* __restrict__ bias,
                               int n4, long total4) {
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    const long step = (long)gridDim.x * blockDim.x;
    for (; i < total4; i += step) {
        float4 v = x[i];
        float4 b = __ldg(bias + (i % n4));
        v.x = mish2(v.x + b.x);
        v.y = mish2(v.y + b.y);
        v.z = mish2(v.z + b.z);
        v.w = mish2(v.w + b.w);
        x[i] = v;
    }
}

torch::Tensor linear_mish_mish(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
    const at::cuda::OptionalCUDAGuard guard(device_of(x));
    auto y = at::mm(x, w.t());
    const int n = y.size(1);
    TORCH_CHECK(n % 4 == 0, "the width must be a multiple of 4");
    const long total4 = y.numel() / 4;
    const int threads = 256;
    const int blocks = (int)std::min<long>((total4 + threads - 1) / threads, 132 * 16);
    bias_mish_mish<<<blocks, threads, 0, at::cuda::getCurrentCUDAStream()>>>(
        reinterpret_cast<float4*>(y.data_ptr<float>()),
        reinterpret_cast<const float4*>(b.data_ptr<float>()), n / 4, total4);
    return y;
}
"""

cpp_source = "torch::Tensor linear_mish_mish(torch::Tensor x, torch::Tensor w, torch::Tensor b);"

mish_ext = load_inline(
    name="linear_mish_mish_ext",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["linear_mish_mish"],
    extra_cuda_cflags=["-O3", "--use_fast_math"],
    verbose=False,
)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x):
        return mish_ext.linear_mish_mish(x, self.linear.weight, self.linear.bias)
