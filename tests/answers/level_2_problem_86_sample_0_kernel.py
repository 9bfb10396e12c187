import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

# The division is folded into the GEMM (alpha = 1 / divisor); bias / divisor and the exact GELU are
# one vectorised pass in place.
cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

__device__ __forceinline__ float gelu(float v) {
    return v * normcdff(v);
}

__global__ void bias_gelu(float* __restrict__ y, const float* __restrict__ bias, int cols,
                          float inv) {
    // One block per row; 16-byte accesses.
    float4* row = reinterpret_cast<float4*>(y + (size_t)blockIdx.x * cols);
    const float4* b4 = reinterpret_cast<const float4*>(bias);
    for (int i = threadIdx.x; i < cols / 4; i += blockDim.x) {
        float4 v = row[i];
        float4 b = __ldg(b4 + i);
        v.x = gelu(fmaf(b.x, inv, v.x));
        v.y = gelu(fmaf(b.y, inv, v.y));
        v.z = gelu(fmaf(b.z, inv, v.z));
        v.w = gelu(fmaf(b.w, inv, v.w));
        row[i] = v;
    }
}

torch::Tensor matmul_div_gelu(torch::Tensor x, torch::Tensor w, torch::Tensor bias,
                              double divisor) {
    const double inv = 1.0 / divisor;
    auto y = torch::empty({x.size(0), w.size(0)}, x.options());
    at::addmm_out(y, y, x, w.t(), /*beta=*/0, /*alpha=*/inv);
    bias_gelu<<<(int)y.size(0), 512, 0, at::cuda::getCurrentCUDAStream()>>>(
        y.data_ptr<float>(), bias.data_ptr<float>(), (int)y.size(1), (float)inv);
    return y;
}
"""

cpp_source = """
torch::Tensor matmul_div_gelu(torch::Tensor x, torch::Tensor w, torch::Tensor bias,
                              double divisor);
"""

ext = load_inline(name="matmul_div_gelu_ext", cpp_sources=cpp_source, cuda_sources=cuda_source,
                  functions=["matmul_div_gelu"], verbose=False)


class ModelNew(nn.Module):
    def __init__(self, input_size, output_size, divisor):
        super().__init__()
        self.linear = nn.Linear(input_size, output_size)
        self.divisor = divisor

    @torch.no_grad()
    def forward(self, x):
        return ext.matmul_div_gelu(x, self.linear.weight, self.linear.bias, self.divisor)
