import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_src = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

// One block per row. The instance norm sees a (1, C) plane per sample, so it is a plain row norm.
// The row is kept in registers between the passes: 256 threads x VEC float4.
template <int VEC>
__global__ void row_norm_add_mul(const float* __restrict__ x, const float* __restrict__ y,
                                 float* __restrict__ out, int n, float eps) {
    const int row = blockIdx.x, tid = threadIdx.x;
    const float4* xr = reinterpret_cast<const float4*>(x + (size_t)row * n);
    const float4* yr = reinterpret_cast<const float4*>(y + (size_t)row * n);
    float4* orow = reinterpret_cast<float4*>(out + (size_t)row * n);
    __shared__ float red[2][8];

    float4 v[VEC];
    float s = 0.f;
#pragma unroll
    for (int i = 0; i < VEC; ++i) {
        v[i] = xr[tid + i * 256];
        s += (v[i].x + v[i].y) + (v[i].z + v[i].w);
    }
    for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(0xffffffff, s, o);
    if ((tid & 31) == 0) red[0][tid >> 5] = s;
    __syncthreads();
    float mean = 0.f;
    for (int i = 0; i < 8; ++i) mean += red[0][i];
    mean /= n;

    float q = 0.f;
#pragma unroll
    for (int i = 0; i < VEC; ++i) {
        float a = v[i].x - mean, b = v[i].y - mean, c = v[i].z - mean, d = v[i].w - mean;
        q += a * a + b * b + c * c + d * d;
    }
    for (int o = 16; o; o >>= 1) q += __shfl_xor_sync(0xffffffff, q, o);
    if ((tid & 31) == 0) red[1][tid >> 5] = q;
    __syncthreads();
    float var = 0.f;
    for (int i = 0; i < 8; ++i) var += red[1][i];
    const float r = rsqrtf(var / n + eps);

#pragma unroll
    for (int i = 0; i < VEC; ++i) {
        float4 w = yr[tid + i * 256], o;
        o.x = ((v[i].x - mean) * r + w.x) * w.x;
        o.y = ((v[i].y - mean) * r + w.y) * w.y;
        o.z = ((v[i].z - mean) * r + w.z) * w.z;
        o.w = ((v[i].w - mean) * r + w.w) * w.w;
        orow[tid + i * 256] = o;
    }
}

torch::Tensor norm_add_mul(torch::Tensor x, torch::Tensor y, double eps) {
    const int rows = x.size(0), n = x.size(1);
    auto out = torch::empty_like(x);
    auto st = at::cuda::getCurrentCUDAStream();
    const float *xp = x.data_ptr<float>(), *yp = y.data_ptr<float>();
    float* op = out.data_ptr<float>();
    switch (n) {
        case 1024: row_norm_add_mul<1><<<rows, 256, 0, st>>>(xp, yp, op, n, eps); break;
        case 2048: row_norm_add_mul<2><<<rows, 256, 0, st>>>(xp, yp, op, n, eps); break;
        case 4096: row_norm_add_mul<4><<<rows, 256, 0, st>>>(xp, yp, op, n, eps); break;
        case 8192: row_norm_add_mul<8><<<rows, 256, 0, st>>>(xp, yp, op, n, eps); break;
        default: TORCH_CHECK(false, "unsupported width ", n);
    }
    return out;
}
"""

cpp_src = "torch::Tensor norm_add_mul(torch::Tensor x, torch::Tensor y, double eps);"

ext = load_inline(name="norm_add_mul_ext", cpp_sources=cpp_src, cuda_sources=cuda_src,
                  functions=["norm_add_mul"], extra_cuda_cflags=["-O3"], verbose=False)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, eps=1e-5, momentum=0.1):
        super().__init__()
        self.bmm = nn.Linear(in_features, out_features)
        self.instance_norm = nn.InstanceNorm2d(out_features, eps=eps, momentum=momentum)

    def forward(self, x, y):
        return ext.norm_add_mul(self.bmm(x), y.contiguous(), self.instance_norm.eps)
