import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_src = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

constexpr int THREADS = 1024, IN_REGS = 24, IN_SMEM = 40;
constexpr int CAPACITY = THREADS * (IN_REGS + IN_SMEM);  // 65536 floats

__device__ float block_sum(float v) {
    __shared__ float warps[32];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    #pragma unroll
    for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
    if (lane == 0) warps[warp] = v;
    __syncthreads();
    v = warps[lane];
    #pragma unroll
    for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
    return v;
}

// A row (up to 256 KiB) is split between registers and shared memory, so it is read only once.
// Rows have odd length, hence scalar but fully coalesced accesses. Each thread reads back only
// what it wrote to shared memory itself: no barrier is needed for that part.
__global__ __launch_bounds__(THREADS, 1)
void l1_norm_kernel(const float* __restrict__ x, float* __restrict__ y, int d) {
    extern __shared__ float buf[];
    const float* src = x + (size_t)blockIdx.x * d;
    float* dst = y + (size_t)blockIdx.x * d;
    const int tid = threadIdx.x;
    float r[IN_REGS];
    float s = 0.f;
    #pragma unroll
    for (int i = 0; i < IN_REGS; ++i) {
        const int j = i * THREADS + tid;
        r[i] = j < d ? __ldcs(src + j) : 0.f;
    }
    #pragma unroll 8
    for (int i = 0; i < IN_SMEM; ++i) {
        const int j = (IN_REGS + i) * THREADS + tid;
        const float v = j < d ? __ldcs(src + j) : 0.f;
        buf[i * THREADS + tid] = v;
        s += fabsf(v);
    }
    #pragma unroll
    for (int i = 0; i < IN_REGS; ++i) s += fabsf(r[i]);

    const float inv = (float)d / block_sum(s);
    #pragma unroll
    for (int i = 0; i < IN_REGS; ++i) {
        const int j = i * THREADS + tid;
        if (j < d) __stcs(dst + j, r[i] * inv);
    }
    #pragma unroll 8
    for (int i = 0; i < IN_SMEM; ++i) {
        const int j = (IN_REGS + i) * THREADS + tid;
        if (j < d) __stcs(dst + j, buf[i * THREADS + tid] * inv);
    }
}

torch::Tensor l1_norm(torch::Tensor x) {
    x = x.contiguous();
    const int64_t rows = x.size(0), d = x.size(1);
    if (d > CAPACITY) return x / x.abs().mean(1, true);
    auto y = torch::empty_like(x);
    const int smem = IN_SMEM * THREADS * sizeof(float);
    cudaFuncSetAttribute(l1_norm_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, smem);
    l1_norm_kernel<<<rows, THREADS, smem, at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), (int)d);
    return y;
}
"""

ext = load_inline(
    name="l1_norm_ext",
    cpp_sources="torch::Tensor l1_norm(torch::Tensor x);",
    cuda_sources=cuda_src,
    functions=["l1_norm"],
    extra_cuda_cflags=["-O3"],
    verbose=False,
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.l1_norm(x)
