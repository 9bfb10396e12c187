import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

leaky_relu_source = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void leaky_relu_kernel(const float* __restrict__ x, float* __restrict__ out,
                                  float slope, size_t n) {
    const size_t n4 = n / 4;
    const size_t stride = (size_t)gridDim.x * blockDim.x;
    const size_t start = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    const float4* x4 = reinterpret_cast<const float4*>(x);
    float4* o4 = reinterpret_cast<float4*>(out);
    for (size_t i = start; i < n4; i += stride) {
        float4 v = x4[i];
        v.x = v.x > 0.f ? v.x : v.x * slope;
        v.y = v.y > 0.f ? v.y : v.y * slope;
        v.z = v.z > 0.f ? v.z : v.z * slope;
        v.w = v.w > 0.f ? v.w : v.w * slope;
        o4[i] = v;
    }
    for (size_t i = n4 * 4 + start; i < n; i += stride) {
        const float v = x[i];
        out[i] = v > 0.f ? v : v * slope;
    }
}

torch::Tensor leaky_relu_cuda(torch::Tensor x, double slope) {
    auto out = torch::empty_like(x);
    const int threads = 512;
    const int blocks = 132 * 16;  // a few waves over the SMs of an H100
    leaky_relu_kernel<<<blocks, threads>>>(x.data_ptr<float>(), out.data_ptr<float>(),
                                           (float)slope, (size_t)x.numel());
    return out;
}
"""

leaky_relu = load_inline(
    name="leaky_relu_gridstride",
    cpp_sources="torch::Tensor leaky_relu_cuda(torch::Tensor x, double slope);",
    cuda_sources=leaky_relu_source,
    functions=["leaky_relu_cuda"],
    verbose=False,
)


class ModelNew(nn.Module):
    def __init__(self, negative_slope: float = 0.01):
        super().__init__()
        self.negative_slope = negative_slope
        self.leaky_relu = leaky_relu

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.leaky_relu.leaky_relu_cuda(x.contiguous(), self.negative_slope)
