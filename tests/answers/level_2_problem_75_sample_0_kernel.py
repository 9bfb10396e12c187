import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

// Group norm and row minimum in one pass: the normalised row is never written.
// A thread owns whole groups (their width is small); values are read twice, the second time
// from L1.
__global__ void gn_row_min(const float* __restrict__ x, const float* __restrict__ gamma,
                           const float* __restrict__ beta, float* __restrict__ rowmin, int n,
                           int groups, int size, float eps) {
    extern __shared__ float sx[];
    const float* xr = x + (size_t)blockIdx.x * n;
    const int tid = threadIdx.x;
    // Coalesced copy of the row; one word of padding for each group against bank conflicts.
    for (int i = tid; i < n; i += blockDim.x) sx[i + i / size] = xr[i];
    __syncthreads();
    float best = INFINITY;
    for (int g = tid; g < groups; g += blockDim.x) {
        const float* p = sx + g * (size + 1);
        float s = 0.f;
        for (int j = 0; j < size; ++j) s += p[j];
        const float mean = s / size;
        float q = 0.f;
        for (int j = 0; j < size; ++j) q += (p[j] - mean) * (p[j] - mean);
        const float r = rsqrtf(q / size + eps);
        for (int j = 0; j < size; ++j) {
            int c = g * size + j;
            best = fminf(best, (p[j] - mean) * r * __ldg(gamma + c) + __ldg(beta + c));
        }
    }
    __shared__ float red[32];
    for (int o = 16; o; o >>= 1) best = fminf(best, __shfl_xor_sync(0xffffffff, best, o));
    if ((tid & 31) == 0) red[tid >> 5] = best;
    __syncthreads();
    if (tid == 0) {
        for (int i = 1; i < blockDim.x / 32; ++i) best = fminf(best, red[i]);
        rowmin[blockIdx.x] = best;
    }
}

// (B, 1) + (1, C, 1, 1) broadcasts to (1, C, B, 1): out[c * B + b] = rowmin[b] + bias[c].
__global__ void outer_add(const float* __restrict__ rowmin, const float* __restrict__ bias,
                          float* __restrict__ out, int B) {
    const float v = __ldg(bias + blockIdx.x);
    for (int b = threadIdx.x; b < B; b += blockDim.x)
        out[(size_t)blockIdx.x * B + b] = __ldg(rowmin + b) + v;
}

torch::Tensor gn_min_bias(torch::Tensor x, torch::Tensor gamma, torch::Tensor beta,
                          torch::Tensor bias, int64_t groups, double eps) {
    const at::cuda::OptionalCUDAGuard guard(device_of(x));
    const int B = x.size(0), n = x.size(1), C = bias.size(1);
    auto st = at::cuda::getCurrentCUDAStream();
    auto rowmin = torch::empty({B}, x.options());
    auto out = torch::empty({1, C, B, 1}, x.options());
    const int smem = (n + groups) * sizeof(float);
    gn_row_min<<<B, 512, smem, st>>>(x.data_ptr<float>(), gamma.data_ptr<float>(),
                                     beta.data_ptr<float>(), rowmin.data_ptr<float>(), n,
                                     (int)groups, n / (int)groups, (float)eps);
    outer_add<<<C, 256, 0, st>>>(rowmin.data_ptr<float>(), bias.data_ptr<float>(),
                                 out.data_ptr<float>(), B);
    return out;
}
"""

cpp_source = """
torch::Tensor gn_min_bias(torch::Tensor x, torch::Tensor gamma, torch::Tensor beta,
                          torch::Tensor bias, int64_t groups, double eps);
"""

ext = load_inline(name="gn_min_bias_ext", cpp_sources=cpp_source, cuda_sources=cuda_source,
                  functions=["gn_min_bias"], extra_cuda_cflags=["-O3"], verbose=False)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, num_groups, bias_shape):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.group_norm = nn.GroupNorm(num_groups, out_features)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        gn = self.group_norm
        return ext.gn_min_bias(self.gemm(x), gn.weight, gn.bias, self.bias, gn.num_groups, gn.eps)
