import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

struct MaxOp { __device__ float operator()(float a, float b) const { return fmaxf(a, b); } };
struct SumOp { __device__ float operator()(float a, float b) const { return a + b; } };

template <int T, class Op>
__device__ __forceinline__ float block_reduce(float v, float* buf, Op op) {
    for (int o = 16; o; o >>= 1) v = op(v, __shfl_xor_sync(0xffffffff, v, o));
    __syncthreads();
    if ((threadIdx.x & 31) == 0) buf[threadIdx.x >> 5] = v;
    __syncthreads();
    v = buf[0];
#pragma unroll
    for (int i = 1; i < T / 32; ++i) v = op(v, buf[i]);
    return v;
}

__device__ __forceinline__ float gelu(float v) {
    return 0.5f * v * (1.f + erff(v * 0.70710678118654752440f));
}

// bias + gelu + softmax over a row held in registers: T threads x V values.
template <int T, int V>
__global__ void __launch_bounds__(T)
bias_gelu_softmax(float* __restrict__ x, const float* __restrict__ bias, int n) {
    __shared__ float buf[T / 32];
    float* row = x + (size_t)blockIdx.x * n;
    float v[V];
    float m = -INFINITY;
#pragma unroll
    for (int i = 0; i < V; i += 4) {
        const int c = (i / 4 * T + threadIdx.x) * 4;
        float4 a = *reinterpret_cast<const float4*>(row + c);
        float4 b = __ldg(reinterpret_cast<const float4*>(bias + c));
        v[i] = gelu(a.x + b.x);
        v[i + 1] = gelu(a.y + b.y);
        v[i + 2] = gelu(a.z + b.z);
        v[i + 3] = gelu(a.w + b.w);
        m = fmaxf(m, fmaxf(fmaxf(v[i], v[i + 1]), fmaxf(v[i + 2], v[i + 3])));
    }
    m = block_reduce<T>(m, buf, MaxOp());
    float s = 0.f;
#pragma unroll
    for (int i = 0; i < V; ++i) {
        v[i] = __expf(v[i] - m);
        s += v[i];
    }
    s = 1.f / block_reduce<T>(s, buf, SumOp());
#pragma unroll
    for (int i = 0; i < V; i += 4) {
        const int c = (i / 4 * T + threadIdx.x) * 4;
        *reinterpret_cast<float4*>(row + c) =
            make_float4(v[i] * s, v[i + 1] * s, v[i + 2] * s, v[i + 3] * s);
    }
}

torch::Tensor matmul_gelu_softmax(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
    auto y = at::matmul(x, w.t());
    const int rows = y.size(0), n = y.size(1);
    auto st = at::cuda::getCurrentCUDAStream();
    if (n == 8192)
        bias_gelu_softmax<512, 16><<<rows, 512, 0, st>>>(y.data_ptr<float>(), b.data_ptr<float>(),
                                                         n);
    else if (n == 4096)
        bias_gelu_softmax<256, 16><<<rows, 256, 0, st>>>(y.data_ptr<float>(), b.data_ptr<float>(),
                                                         n);
    else
        return at::softmax(at::gelu(y.add_(b)), 1);
    return y;
}
"""

cpp_source = "torch::Tensor matmul_gelu_softmax(torch::Tensor x, torch::Tensor w, torch::Tensor b);"

ext = load_inline(name="matmul_gelu_softmax_ext", cpp_sources=cpp_source,
                  cuda_sources=cuda_source, functions=["matmul_gelu_softmax"],
                  extra_cuda_cflags=["-O3"], verbose=False)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    @torch.no_grad()
    def forward(self, x):
        return ext.matmul_gelu_softmax(x, self.linear.weight, self.linear.bias)
