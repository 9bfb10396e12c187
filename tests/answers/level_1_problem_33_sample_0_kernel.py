import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_src = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

__device__ __forceinline__ float warp_sum(float v) {
    #pragma unroll
    for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffffu, v, o);
    return v;
}

// One block per (image, channel) plane: sum and sum of squares of the plane.
__global__ __launch_bounds__(512)
void plane_stats(const float* __restrict__ x, float2* __restrict__ part, int hw4) {
    const float4* p = reinterpret_cast<const float4*>(x) + (size_t)blockIdx.x * hw4;
    float s = 0.f, q = 0.f;
    #pragma unroll 4
    for (int i = threadIdx.x; i < hw4; i += 512) {
        const float4 v = p[i];
        s += (v.x + v.y) + (v.z + v.w);
        q += (v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w);
    }
    __shared__ float ss[16], sq[16];
    s = warp_sum(s);
    q = warp_sum(q);
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    if (lane == 0) { ss[warp] = s; sq[warp] = q; }
    __syncthreads();
    if (warp == 0) {
        s = warp_sum(lane < 16 ? ss[lane] : 0.f);
        q = warp_sum(lane < 16 ? sq[lane] : 0.f);
        if (lane == 0) part[blockIdx.x] = make_float2(s, q);
    }
}

// One warp per channel; doubles, as the variance is a difference of large numbers.
__global__ void finalize(const float2* part, const float* w, const float* b, float* rmean,
                         float* rvar, float2* affine, int n, int c, double count,
                         float momentum, float eps) {
    const int ch = blockIdx.x;
    double s = 0, q = 0;
    for (int i = threadIdx.x; i < n; i += 32) {
        const float2 v = part[(size_t)i * c + ch];
        s += v.x;
        q += v.y;
    }
    for (int o = 16; o > 0; o >>= 1) {
        s += __shfl_down_sync(0xffffffffu, s, o);
        q += __shfl_down_sync(0xffffffffu, q, o);
    }
    if (threadIdx.x == 0) {
        const double mean = s / count;
        const double var = fmax(q / count - mean * mean, 0.0);
        const float scale = w[ch] * (float)(1.0 / sqrt(var + (double)eps));
        affine[ch] = make_float2(scale, b[ch] - (float)mean * scale);
        rmean[ch] += momentum * ((float)mean - rmean[ch]);
        rvar[ch] += momentum * ((float)(var * count / (count - 1.0)) - rvar[ch]);
    }
}

// Planes in reverse order: the last ones of the first pass are the likeliest to be in L2.
__global__ __launch_bounds__(512)
void apply(const float* __restrict__ x, const float2* __restrict__ affine,
           float* __restrict__ y, int hw4, int c) {
    const int plane = gridDim.x - 1 - blockIdx.x;
    const float2 a = affine[plane % c];
    const float4* p = reinterpret_cast<const float4*>(x) + (size_t)plane * hw4;
    float4* o = reinterpret_cast<float4*>(y) + (size_t)plane * hw4;
    #pragma unroll 4
    for (int i = threadIdx.x; i < hw4; i += 512) {
        const float4 v = __ldcs(p + i);
        __stcs(o + i, make_float4(fmaf(v.x, a.x, a.y), fmaf(v.y, a.x, a.y),
                                  fmaf(v.z, a.x, a.y), fmaf(v.w, a.x, a.y)));
    }
}

torch::Tensor bn_train(torch::Tensor x, torch::Tensor w, torch::Tensor b, torch::Tensor rmean,
                       torch::Tensor rvar, double momentum, double eps) {
    x = x.contiguous();
    const int n = x.size(0), c = x.size(1), hw = x.size(2) * x.size(3);
    TORCH_CHECK(hw % 4 == 0, "plane size must be a multiple of 4");
    auto y = torch::empty_like(x);
    auto part = torch::empty({n * c, 2}, x.options());
    auto affine = torch::empty({c, 2}, x.options());
    auto st = at::cuda::getCurrentCUDAStream();
    float2* pp = reinterpret_cast<float2*>(part.data_ptr<float>());
    float2* pa = reinterpret_cast<float2*>(affine.data_ptr<float>());
    plane_stats<<<n * c, 512, 0, st>>>(x.data_ptr<float>(), pp, hw / 4);
    finalize<<<c, 32, 0, st>>>(pp, w.data_ptr<float>(), b.data_ptr<float>(),
                               rmean.data_ptr<float>(), rvar.data_ptr<float>(), pa, n, c,
                               (double)n * hw, (float)momentum, (float)eps);
    apply<<<n * c, 512, 0, st>>>(x.data_ptr<float>(), pa, y.data_ptr<float>(), hw / 4, c);
    return y;
}
"""

ext = load_inline(
    name="bn_train_ext",
    cpp_sources=(
        "torch::Tensor bn_train(torch::Tensor x, torch::Tensor w, torch::Tensor b,"
        " torch::Tensor rmean, torch::Tensor rvar, double momentum, double eps);"
    ),
    cuda_sources=cuda_src,
    functions=["bn_train"],
    extra_cuda_cflags=["-O3"],
    verbose=False,
)


class ModelNew(nn.Module):
    def __init__(self, num_features: int):
        super().__init__()
        self.bn = nn.BatchNorm2d(num_features=num_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        bn = self.bn
        if not bn.training:
            return bn(x)
        bn.num_batches_tracked.add_(1)
        return ext.bn_train(
            x, bn.weight.detach(), bn.bias.detach(), bn.running_mean, bn.running_var,
            bn.momentum, bn.eps,
        )
