import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

# The concatenation is not made: W [x; h] = Wx x + Wh h, two GEMMs on column slices of the
# weight, the second one accumulating onto the first.
cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <vector>

__global__ void bias_tanh(float4* __restrict__ h, const float4* __restrict__ bias, int n4,
                          long total) {
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i >= total) return;
    float4 v = h[i], b = __ldg(bias + i % n4);
    v.x = tanhf(v.x + b.x);
    v.y = tanhf(v.y + b.y);
    v.z = tanhf(v.z + b.z);
    v.w = tanhf(v.w + b.w);
    h[i] = v;
}

std::vector<torch::Tensor> rnn_step(torch::Tensor x, torch::Tensor h, torch::Tensor wi,
                                    torch::Tensor bi, torch::Tensor wo, torch::Tensor bo) {
    const at::cuda::OptionalCUDAGuard guard(device_of(x));
    const int64_t I = x.size(1), H = h.size(1);
    auto nh = at::mm(x, wi.narrow(1, 0, I).t());
    nh.addmm_(h, wi.narrow(1, I, H).t());
    TORCH_CHECK(H % 4 == 0);
    const long total = nh.numel() / 4;
    bias_tanh<<<(total + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
        reinterpret_cast<float4*>(nh.data_ptr<float>()),
        reinterpret_cast<const float4*>(bi.data_ptr<float>()), (int)(H / 4), total);
    auto out = at::addmm(bo, nh, wo.t());
    return {nh, out};
}
"""

cpp_source = """
#include <vector>
std::vector<torch::Tensor> rnn_step(torch::Tensor x, torch::Tensor h, torch::Tensor wi,
                                    torch::Tensor bi, torch::Tensor wo, torch::Tensor bo);
"""

ext = load_inline(name="rnn_step_ext", cpp_sources=cpp_source, cuda_sources=cuda_source,
                  functions=["rnn_step"], verbose=False)

batch_size = 256


class ModelNew(nn.Module):
    def __init__(self, input_size: int, hidden_size: int, output_size: int):
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.output_size = output_size
        self.hidden = torch.randn((batch_size, hidden_size))
        self.i2h = nn.Linear(input_size + hidden_size, hidden_size)
        self.h2o = nn.Linear(hidden_size, output_size)

    @torch.no_grad()
    def forward(self, x, initial_hidden=None):
        h = self.hidden if initial_hidden is None else initial_hidden
        h = h.to(x.device)
        self.hidden, out = ext.rnn_step(x, h, self.i2h.weight, self.i2h.bias, self.h2o.weight,
                                        self.h2o.bias)
        return out
