import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

// In place softmax over a row. 1024 threads, up to NV float4 a thread kept in registers,
// so that the row is read once and written once.
template <int NV>
__global__ void __launch_bounds__(1024) softmax_rows(float* __restrict__ x, int n) {
    __shared__ float red[32];
    float4* row = reinterpret_cast<float4*>(x + (size_t)blockIdx.x * n);
    const int n4 = n / 4, tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
    float4 v[NV];
    float m = -INFINITY;
#pragma unroll
    for (int i = 0; i < NV; ++i) {
        int c = tid + i * 1024;
        v[i] = c < n4 ? row[c] : make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
        m = fmaxf(m, fmaxf(fmaxf(v[i].x, v[i].y), fmaxf(v[i].z, v[i].w)));
    }
    for (int o = 16; o; o >>= 1) m = fmaxf(m, __shfl_xor_sync(0xffffffff, m, o));
    if (lane == 0) red[warp] = m;
    __syncthreads();
    m = red[lane];
    for (int o = 16; o; o >>= 1) m = fmaxf(m, __shfl_xor_sync(0xffffffff, m, o));
    __syncthreads();

    float s = 0.f;
#pragma unroll
    for (int i = 0; i < NV; ++i) {
        v[i].x = __expf(v[i].x - m);
        v[i].y = __expf(v[i].y - m);
        v[i].z = __expf(v[i].z - m);
        v[i].w = __expf(v[i].w - m);
        s += (v[i].x + v[i].y) + (v[i].z + v[i].w);
    }
    for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(0xffffffff, s, o);
    if (lane == 0) red[warp] = s;
    __syncthreads();
    s = red[lane];
    for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(0xffffffff, s, o);
    const float inv = 1.f / s;
#pragma unroll
    for (int i = 0; i < NV; ++i) {
        int c = tid + i * 1024;
        if (c < n4) {
            v[i].x *= inv; v[i].y *= inv; v[i].z *= inv; v[i].w *= inv;
            row[c] = v[i];
        }
    }
}

torch::Tensor softmax_inplace(torch::Tensor x) {
    const int rows = x.size(0), n = x.size(1);
    TORCH_CHECK(x.is_contiguous() && n % 4 == 0 && n <= 32768);
    auto st = at::cuda::getCurrentCUDAStream();
    if (n <= 4096) softmax_rows<1><<<rows, 1024, 0, st>>>(x.data_ptr<float>(), n);
    else if (n <= 8192) softmax_rows<2><<<rows, 1024, 0, st>>>(x.data_ptr<float>(), n);
    else if (n <= 16384) softmax_rows<4><<<rows, 1024, 0, st>>>(x.data_ptr<float>(), n);
    else softmax_rows<8><<<rows, 1024, 0, st>>>(x.data_ptr<float>(), n);
    return x;
}
"""

cpp_source = "torch::Tensor softmax_inplace(torch::Tensor x);"

ext = load_inline(name="softmax_inplace_ext", cpp_sources=cpp_source, cuda_sources=cuda_source,
                  functions=["softmax_inplace"], extra_cuda_cflags=["-O3"], verbose=False)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, dropout_p):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.dropout = nn.Dropout(dropout_p)

    @torch.no_grad()
    def forward(self, x):
        # The dropout stays PyTorch's, so that the mask is the one the same seed would give.
        y = self.dropout(self.matmul(x))
        return ext.softmax_inplace(y)
