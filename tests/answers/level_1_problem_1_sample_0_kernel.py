import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_src = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

constexpr int BM = 128, BN = 128, BK = 16, PAD = 4;

// 256 threads, each computes an 8x8 piece of a 128x128 tile (as four 4x4 quadrants).
__global__ __launch_bounds__(256, 2)
void sgemm_kernel(const float* __restrict__ A, const float* __restrict__ B,
                  float* __restrict__ C, int M, int N, int K) {
    __shared__ __align__(16) float As[2][BK][BM + PAD];
    __shared__ __align__(16) float Bs[2][BK][BN];
    const int tid = threadIdx.x;
    const int tx = tid % 16, ty = tid / 16;
    const int arow = tid / 4, acol = (tid % 4) * 4;
    const int brow = tid / 32, bcol = (tid % 32) * 4;
    const float* Ap = A + (size_t)(blockIdx.y * BM + arow) * K + acol;
    const float* Bp = B + (size_t)brow * N + blockIdx.x * BN + bcol;

    float acc[8][8] = {};
    float4 a0, a1, b0, b1;

    auto fetch = [&](int k0) {
        a0 = *reinterpret_cast<const float4*>(Ap + k0);
        a1 = *reinterpret_cast<const float4*>(Ap + k0 + (size_t)64 * K);
        b0 = *reinterpret_cast<const float4*>(Bp + (size_t)k0 * N);
        b1 = *reinterpret_cast<const float4*>(Bp + (size_t)(k0 + 8) * N);
    };
    auto stash = [&](int s) {
        As[s][acol + 0][arow] = a0.x; As[s][acol + 1][arow] = a0.y;
        As[s][acol + 2][arow] = a0.z; As[s][acol + 3][arow] = a0.w;
        As[s][acol + 0][arow + 64] = a1.x; As[s][acol + 1][arow + 64] = a1.y;
        As[s][acol + 2][arow + 64] = a1.z; As[s][acol + 3][arow + 64] = a1.w;
        *reinterpret_cast<float4*>(&Bs[s][brow][bcol]) = b0;
        *reinterpret_cast<float4*>(&Bs[s][brow + 8][bcol]) = b1;
    };

    fetch(0);
    stash(0);
    __syncthreads();
    int s = 0;
    for (int k0 = 0; k0 < K; k0 += BK) {
        const bool more = k0 + BK < K;
        if (more) fetch(k0 + BK);
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
        if (more) {
            stash(s ^ 1);
            __syncthreads();
            s ^= 1;
        }
    }
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int row = blockIdx.y * BM + (i / 4) * 64 + ty * 4 + i % 4;
        float* Cp = C + (size_t)row * N + blockIdx.x * BN + tx * 4;
        *reinterpret_cast<float4*>(Cp) =
            make_float4(acc[i][0], acc[i][1], acc[i][2], acc[i][3]);
        *reinterpret_cast<float4*>(Cp + 64) =
            make_float4(acc[i][4], acc[i][5], acc[i][6], acc[i][7]);
    }
}

torch::Tensor sgemm(torch::Tensor A, torch::Tensor B) {
    const int M = A.size(0), K = A.size(1), N = B.size(1);
    if (M % BM || N % BN || K % BK) return at::matmul(A, B);
    const at::cuda::CUDAGuard guard(A.device());
    A = A.contiguous();
    B = B.contiguous();
    auto C = torch::empty({M, N}, A.options());
    dim3 grid(N / BN, M / BM);
    sgemm_kernel<<<grid, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
        A.data_ptr<float>(), B.data_ptr<float>(), C.data_ptr<float>(), M, N, K);
    return C;
}
"""

ext = load_inline(
    name="sgemm_square",
    cpp_sources="torch::Tensor sgemm(torch::Tensor A, torch::Tensor B);",
    cuda_sources=cuda_src,
    functions=["sgemm"],
    extra_cuda_cflags=["-O3"],
    verbose=False,
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return ext.sgemm(A, B)
