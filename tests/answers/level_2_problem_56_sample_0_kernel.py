import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

# GEMM + bias + sigmoid + row sum in one kernel, on the TF32 tensor cores: the 128 x 32768
# intermediate is never written. 128x128 tiles, 2 cp.async stages, 8 warps of 64x32 each.
cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cuda_pipeline.h>
#include <mma.h>
using namespace nvcuda;

#define BM 128
#define BN 128
#define BK 32
#define LD (BK + 4)
#define CLD (BN + 4)
#define STAGE ((BM + BN) * LD)

__device__ __forceinline__ void load_tile(float* dst, const float* __restrict__ src, int K,
                                          int k0, int tid) {
    // 128 rows x 32 floats = 1024 float4, 4 a thread
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        int e = tid + i * 256, r = e >> 3, c = (e & 7) * 4;
        __pipeline_memcpy_async(dst + r * LD + c, src + (size_t)r * K + k0 + c, 16);
    }
}

__global__ void __launch_bounds__(256)
gemm_sigmoid_sum(const float* __restrict__ X, const float* __restrict__ W,
                 const float* __restrict__ bias, float* __restrict__ out, int K) {
    extern __shared__ __align__(16) float sm[];
    const int tid = threadIdx.x, warp = tid >> 5;
    const int wm = (warp & 1) * 64, wn = (warp >> 1) * 32;
    const float* A = X + (size_t)blockIdx.y * BM * K;
    const float* B = W + (size_t)blockIdx.x * BN * K;

    wmma::fragment<wmma::accumulator, 16, 16, 8, float> acc[4][2];
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 2; ++j) wmma::fill_fragment(acc[i][j], 0.f);

    load_tile(sm, A, K, 0, tid);
    load_tile(sm + BM * LD, B, K, 0, tid);
    __pipeline_commit();
    const int steps = K / BK;
    for (int t = 0; t < steps; ++t) {
        float* cur = sm + (t & 1) * STAGE;
        if (t + 1 < steps) {
            float* nxt = sm + ((t + 1) & 1) * STAGE;
            load_tile(nxt, A, K, (t + 1) * BK, tid);
            load_tile(nxt + BM * LD, B, K, (t + 1) * BK, tid);
            __pipeline_commit();
            __pipeline_wait_prior(1);
        } else {
            __pipeline_wait_prior(0);
        }
        __syncthreads();
#pragma unroll
        for (int kk = 0; kk < BK; kk += 8) {
            wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> a[4];
            wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::col_major> b[2];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                wmma::load_matrix_sync(a[i], cur + (wm + i * 16) * LD + kk, LD);
                for (int e = 0; e < a[i].num_elements; ++e)
                    a[i].x[e] = wmma::__float_to_tf32(a[i].x[e]);
            }
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                wmma::load_matrix_sync(b[j], cur + (BM + wn + j * 16) * LD + kk, LD);
                for (int e = 0; e < b[j].num_elements; ++e)
                    b[j].x[e] = wmma::__float_to_tf32(b[j].x[e]);
            }
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 2; ++j) wmma::mma_sync(acc[i][j], a[i], b[j], acc[i][j]);
        }
        __syncthreads();
    }
    // Epilogue: the tile goes to shared memory, two threads sum each row.
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 2; ++j)
            wmma::store_matrix_sync(sm + (wm + i * 16) * CLD + wn + j * 16, acc[i][j], CLD,
                                    wmma::mem_row_major);
    __syncthreads();
    const int r = tid >> 1, h = tid & 1;
    float s = 0.f;
    for (int c = h; c < BN; c += 2) {
        float v = sm[r * CLD + c] + __ldg(bias + blockIdx.x * BN + c);
        s += 1.f / (1.f + __expf(-v));
    }
    s += __shfl_xor_sync(0xffffffff, s, 1);
    if (h == 0) atomicAdd(out + blockIdx.y * BM + r, s);
}

torch::Tensor run(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
    const int M = x.size(0), K = x.size(1), N = w.size(0);
    TORCH_CHECK(M % BM == 0 && N % BN == 0 && K % BK == 0, "sizes must be multiples of the tile");
    auto out = torch::zeros({M, 1}, x.options());
    const int smem = 2 * STAGE * sizeof(float);
    cudaFuncSetAttribute(gemm_sigmoid_sum, cudaFuncAttributeMaxDynamicSharedMemorySize, smem);
    gemm_sigmoid_sum<<<dim3(N / BN, M / BM), 256, smem, at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(), out.data_ptr<float>(), K);
    return out;
}
"""

cpp_source = "torch::Tensor run(torch::Tensor x, torch::Tensor w, torch::Tensor b);"

ext = load_inline(name="gemm_sigmoid_sum_tf32", cpp_sources=cpp_source, cuda_sources=cuda_source,
                  functions=["run"], extra_cuda_cflags=["-O3"], verbose=False)


class ModelNew(nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.linear = nn.Linear(input_size, hidden_size)

    def forward(self, x):
        return ext.run(x.contiguous(), self.linear.weight, self.linear.bias)
