import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_src = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cuda_pipeline.h>

constexpr int T = 128, BK = 16, STAGES = 3;

// A is symmetric, so A[m][k] == A[k][m]: the tile of A is read k-major, just as the tile of B.
// Both go to shared memory by 16-byte asynchronous copies, with no transposition on the way.
__global__ __launch_bounds__(256, 2)
void symm_kernel(const float* __restrict__ A, const float* __restrict__ B,
                 float* __restrict__ C, int N) {
    extern __shared__ __align__(16) float smem[];
    float (*As)[BK][T] = reinterpret_cast<float (*)[BK][T]>(smem);
    float (*Bs)[BK][T] = reinterpret_cast<float (*)[BK][T]>(smem + STAGES * BK * T);
    const int tid = threadIdx.x, tx = tid % 16, ty = tid / 16;
    const int lr = tid / 32, lc = (tid % 32) * 4;
    const int m0 = blockIdx.y * T, n0 = blockIdx.x * T;

    auto load = [&](int s, int k0) {
        #pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int r = lr + 8 * h;
            __pipeline_memcpy_async(&As[s][r][lc], A + (size_t)(k0 + r) * N + m0 + lc, 16);
            __pipeline_memcpy_async(&Bs[s][r][lc], B + (size_t)(k0 + r) * N + n0 + lc, 16);
        }
    };

    const int tiles = N / BK;
    for (int s = 0; s < STAGES - 1; ++s) {
        load(s, s * BK);
        __pipeline_commit();
    }
    float acc[8][8] = {};
    for (int t = 0; t < tiles; ++t) {
        __pipeline_wait_prior(STAGES - 2);
        __syncthreads();
        const int next = t + STAGES - 1;
        if (next < tiles) load(next % STAGES, next * BK);
        __pipeline_commit();
        const int s = t % STAGES;
        #pragma unroll
        for (int k = 0; k < BK; ++k) {
            float a[8], b[8];
            *reinterpret_cast<float4*>(a) = *reinterpret_cast<float4*>(&As[s][k][ty * 4]);
            *reinterpret_cast<float4*>(a + 4) = *reinterpret_cast<float4*>(&As[s][k][64 + ty * 4]);
            *reinterpret_cast<float4*>(b) = *reinterpret_cast<float4*>(&Bs[s][k][tx * 4]);
            *reinterpret_cast<float4*>(b + 4) = *reinterpret_cast<float4*>(&Bs[s][k][64 + tx * 4]);
            #pragma unroll
            for (int i = 0; i < 8; ++i)
                #pragma unroll
                for (int j = 0; j < 8; ++j) acc[i][j] = fmaf(a[i], b[j], acc[i][j]);
        }
    }
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
        float* out = C + (size_t)(m0 + (i / 4) * 64 + ty * 4 + i % 4) * N + n0 + tx * 4;
        *reinterpret_cast<float4*>(out) =
            make_float4(acc[i][0], acc[i][1], acc[i][2], acc[i][3]);
        *reinterpret_cast<float4*>(out + 64) =
            make_float4(acc[i][4], acc[i][5], acc[i][6], acc[i][7]);
    }
}

torch::Tensor symm_matmul(torch::Tensor A, torch::Tensor B) {
    const int N = A.size(0);
    if (N % T) return at::matmul(A, B);
    A = A.contiguous();
    B = B.contiguous();
    auto C = torch::empty_like(B);
    const int smem = 2 * STAGES * BK * T * sizeof(float);
    cudaFuncSetAttribute(symm_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, smem);
    symm_kernel<<<dim3(N / T, N / T), 256, smem, at::cuda::getCurrentCUDAStream()>>>(
        A.data_ptr<float>(), B.data_ptr<float>(), C.data_ptr<float>(), N);
    return C;
}
"""

ext = load_inline(
    name="symm_matmul_ext",
    cpp_sources="torch::Tensor symm_matmul(torch::Tensor A, torch::Tensor B);",
    cuda_sources=cuda_src,
    functions=["symm_matmul"],
    extra_cuda_cflags=["-O3"],
    verbose=False,
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, A, B):
        return ext.symm_matmul(A, B)
