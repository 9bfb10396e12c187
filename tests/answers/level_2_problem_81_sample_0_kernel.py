import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

# A float32 GEMM of its own (128x128x16 tiles, 8x8 outputs a thread, double buffered shared memory)
# with swish / divide / clamp / tanh / clamp as the epilogue.
cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

#define BM 128
#define BN 128
#define BK 16
#define PAD 4

__device__ __forceinline__ float epilogue(float v) {
    v = v / (1.f + __expf(-v)) * 0.5f;
    v = fminf(fmaxf(v, -1.f), 1.f);
    return tanhf(v);  // |tanh| < 1: the last clamp does nothing
}

__global__ void __launch_bounds__(256)
sgemm_act(const float* __restrict__ A, const float* __restrict__ B,
          const float* __restrict__ bias, float* __restrict__ C, int M, int N, int K) {
    __shared__ __align__(16) float As[2][BK][BM + PAD];
    __shared__ __align__(16) float Bs[2][BK][BN + PAD];
    const int tid = threadIdx.x;
    const int tx = tid & 15, ty = tid >> 4;
    const int lr = tid >> 2, lc = (tid & 3) * 4;  // 64 rows of 16 floats at a time
    const float* a = A + (size_t)(blockIdx.y * BM + lr) * K + lc;
    const float* b = B + (size_t)(blockIdx.x * BN + lr) * K + lc;

    float4 ra[2], rb[2];
    float acc[8][8] = {};

#define FETCH(k)                                                              \
    for (int i = 0; i < 2; ++i) {                                             \
        ra[i] = *reinterpret_cast<const float4*>(a + (size_t)i * 64 * K + (k)); \
        rb[i] = *reinterpret_cast<const float4*>(b + (size_t)i * 64 * K + (k)); \
    }
#define STASH(s)                                                              \
    for (int i = 0; i < 2; ++i) {                                             \
        As[s][lc + 0][lr + i * 64] = ra[i].x; Bs[s][lc + 0][lr + i * 64] = rb[i].x; \
        As[s][lc + 1][lr + i * 64] = ra[i].y; Bs[s][lc + 1][lr + i * 64] = rb[i].y; \
        As[s][lc + 2][lr + i * 64] = ra[i].z; Bs[s][lc + 2][lr + i * 64] = rb[i].z; \
        As[s][lc + 3][lr + i * 64] = ra[i].w; Bs[s][lc + 3][lr + i * 64] = rb[i].w; \
    }

    FETCH(0);
    STASH(0);
    __syncthreads();
    int cur = 0;
    for (int k = 0; k < K; k += BK) {
        const bool more = k + BK < K;
        if (more) { FETCH(k + BK); }
#pragma unroll
        for (int kk = 0; kk < BK; ++kk) {
            float fa[8], fb[8];
            *reinterpret_cast<float4*>(fa) = *reinterpret_cast<float4*>(&As[cur][kk][ty * 4]);
            *reinterpret_cast<float4*>(fa + 4) =
                *reinterpret_cast<float4*>(&As[cur][kk][64 + ty * 4]);
            *reinterpret_cast<float4*>(fb) = *reinterpret_cast<float4*>(&Bs[cur][kk][tx * 4]);
            *reinterpret_cast<float4*>(fb + 4) =
                *reinterpret_cast<float4*>(&Bs[cur][kk][64 + tx * 4]);
#pragma unroll
            for (int i = 0; i < 8; ++i)
#pragma unroll
                for (int j = 0; j < 8; ++j) acc[i][j] = fmaf(fa[i], fb[j], acc[i][j]);
        }
        if (more) { STASH(cur ^ 1); }
        __syncthreads();
        cur ^= 1;
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int r = blockIdx.y * BM + (i / 4) * 64 + ty * 4 + (i & 3);
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int c = blockIdx.x * BN + h * 64 + tx * 4;
            float4 bv = bias ? *reinterpret_cast<const float4*>(bias + c)
                             : make_float4(0.f, 0.f, 0.f, 0.f);
            float4 o;
            o.x = epilogue(acc[i][h * 4 + 0] + bv.x);
            o.y = epilogue(acc[i][h * 4 + 1] + bv.y);
            o.z = epilogue(acc[i][h * 4 + 2] + bv.z);
            o.w = epilogue(acc[i][h * 4 + 3] + bv.w);
            *reinterpret_cast<float4*>(C + (size_t)r * N + c) = o;
        }
    }
}

torch::Tensor gemm_act(torch::Tensor x, torch::Tensor w, c10::optional<torch::Tensor> bias) {
    const int M = x.size(0), K = x.size(1), N = w.size(0);
    TORCH_CHECK(M % BM == 0 && N % BN == 0 && K % BK == 0, "sizes must be multiples of the tile");
    auto out = torch::empty({M, N}, x.options());
    const float* bp = bias.has_value() ? bias->data_ptr<float>() : nullptr;
    sgemm_act<<<dim3(N / BN, M / BM), 256, 0, at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), w.data_ptr<float>(), bp, out.data_ptr<float>(), M, N, K);
    return out;
}
"""

cpp_source = """
torch::Tensor gemm_act(torch::Tensor x, torch::Tensor w, c10::optional<torch::Tensor> bias);
"""

ext = load_inline(name="sgemm_swish_tanh", cpp_sources=cpp_source, cuda_sources=cuda_source,
                  functions=["gemm_act"], extra_cuda_cflags=["-O3"], verbose=False)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features, bias=bias)

    def forward(self, x):
        return ext.gemm_act(x.contiguous(), self.gemm.weight, self.gemm.bias)
