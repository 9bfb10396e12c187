import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_src = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

constexpr int BM = 128, BN = 128, BK = 8;

// Split-K: blockIdx.z takes one slice of K, and its partial tile goes to a workspace.
__global__ __launch_bounds__(256, 2)
void splitk_kernel(const float* __restrict__ A, const float* __restrict__ B,
                   float* __restrict__ W, int M, int N, int K, int slice) {
    __shared__ __align__(16) float As[2][BK][BM + 4];
    __shared__ __align__(16) float Bs[2][BK][BN];
    const int tid = threadIdx.x, tx = tid % 16, ty = tid / 16;
    const int ar = tid / 2, ac = (tid % 2) * 4;
    const int br = tid / 32, bc = (tid % 32) * 4;
    const int kbeg = blockIdx.z * slice, kend = min(K, kbeg + slice);
    const float* Ap = A + (size_t)(blockIdx.y * BM + ar) * K + ac;
    const float* Bp = B + (size_t)br * N + blockIdx.x * BN + bc;
    float acc[8][8] = {};

    float4 a4 = *reinterpret_cast<const float4*>(Ap + kbeg);
    float4 b4 = *reinterpret_cast<const float4*>(Bp + (size_t)kbeg * N);
    int s = 0;
    for (int k0 = kbeg; k0 < kend; k0 += BK) {
        As[s][ac][ar] = a4.x; As[s][ac + 1][ar] = a4.y;
        As[s][ac + 2][ar] = a4.z; As[s][ac + 3][ar] = a4.w;
        *reinterpret_cast<float4*>(&Bs[s][br][bc]) = b4;
        __syncthreads();
        if (k0 + BK < kend) {
            a4 = *reinterpret_cast<const float4*>(Ap + k0 + BK);
            b4 = *reinterpret_cast<const float4*>(Bp + (size_t)(k0 + BK) * N);
        }
        #pragma unroll
        for (int k = 0; k < BK; ++k) {
            float a[8], b[8];
            #pragma unroll
            for (int h = 0; h < 2; ++h) {
                *reinterpret_cast<float4*>(a + 4 * h) =
                    *reinterpret_cast<float4*>(&As[s][k][64 * h + ty * 4]);
                *reinterpret_cast<float4*>(b + 4 * h) =
                    *reinterpret_cast<float4*>(&Bs[s][k][64 * h + tx * 4]);
            }
            #pragma unroll
            for (int i = 0; i < 8; ++i)
                #pragma unroll
                for (int j = 0; j < 8; ++j) acc[i][j] += a[i] * b[j];
        }
        s ^= 1;
    }
    float* Wp = W + (size_t)blockIdx.z * M * N;
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int row = blockIdx.y * BM + (i / 4) * 64 + ty * 4 + i % 4;
        #pragma unroll
        for (int h = 0; h < 2; ++h)
            *reinterpret_cast<float4*>(Wp + (size_t)row * N + blockIdx.x * BN + 64 * h + tx * 4) =
                make_float4(acc[i][4 * h], acc[i][4 * h + 1], acc[i][4 * h + 2], acc[i][4 * h + 3]);
    }
}

__global__ void reduce_kernel(const float* __restrict__ W, float* __restrict__ C,
                              int total, int splits) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
    float s = 0.f;
    #pragma unroll 8
    for (int z = 0; z < splits; ++z) s += W[(size_t)z * total + i];
    C[i] = s;
}

torch::Tensor matmul_large_k(torch::Tensor A, torch::Tensor B) {
    A = A.contiguous();
    B = B.contiguous();
    const int M = A.size(0), K = A.size(1), N = B.size(1);
    const int splits = 64, slice = K / splits;
    if (M % BM || N % BN || K % (splits * BK)) return at::matmul(A, B);
    auto W = torch::empty({splits, M, N}, A.options());
    auto C = torch::empty({M, N}, A.options());
    auto stream = at::cuda::getCurrentCUDAStream();
    splitk_kernel<<<dim3(N / BN, M / BM, splits), 256, 0, stream>>>(
        A.data_ptr<float>(), B.data_ptr<float>(), W.data_ptr<float>(), M, N, K, slice);
    reduce_kernel<<<(M * N + 255) / 256, 256, 0, stream>>>(
        W.data_ptr<float>(), C.data_ptr<float>(), M * N, splits);
    return C;
}
"""

ext = load_inline(
    name="matmul_large_k_ext",
    cpp_sources="torch::Tensor matmul_large_k(torch::Tensor A, torch::Tensor B);",
    cuda_sources=cuda_src,
    functions=["matmul_large_k"],
    extra_cuda_cflags=["-O3"],
    verbose=False,
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return ext.matmul_large_k(A, B)
