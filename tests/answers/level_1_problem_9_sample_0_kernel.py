import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_src = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

constexpr int BM = 128, BN = 128, KK = 32;

// The inner dimension is only 32, so both operand tiles fit in shared memory at once: one load,
// one barrier, 32 rank-1 updates, then streaming stores. The 4 GiB output dominates.
__global__ __launch_bounds__(256, 2)
void outer_kernel(const float* __restrict__ A, const float* __restrict__ B,
                  float* __restrict__ C, int M, int N) {
    __shared__ __align__(16) float As[KK][BM + 4];
    __shared__ __align__(16) float Bs[KK][BN];
    const int tid = threadIdx.x, tx = tid % 16, ty = tid / 16;
    const size_t m0 = (size_t)blockIdx.y * BM, n0 = (size_t)blockIdx.x * BN;
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int id = i * 256 + tid;
        const int r = id / 8, c = (id % 8) * 4;
        const float4 a = __ldg(reinterpret_cast<const float4*>(A + (m0 + r) * KK + c));
        As[c][r] = a.x; As[c + 1][r] = a.y; As[c + 2][r] = a.z; As[c + 3][r] = a.w;
        const int br = id / 32, bc = (id % 32) * 4;
        *reinterpret_cast<float4*>(&Bs[br][bc]) =
            __ldg(reinterpret_cast<const float4*>(B + (size_t)br * N + n0 + bc));
    }
    __syncthreads();

    float acc[8][8] = {};
    #pragma unroll 8
    for (int k = 0; k < KK; ++k) {
        const float4 a0 = *reinterpret_cast<const float4*>(&As[k][ty * 4]);
        const float4 a1 = *reinterpret_cast<const float4*>(&As[k][64 + ty * 4]);
        const float4 b0 = *reinterpret_cast<const float4*>(&Bs[k][tx * 4]);
        const float4 b1 = *reinterpret_cast<const float4*>(&Bs[k][64 + tx * 4]);
        const float a[8] = {a0.x, a0.y, a0.z, a0.w, a1.x, a1.y, a1.z, a1.w};
        const float b[8] = {b0.x, b0.y, b0.z, b0.w, b1.x, b1.y, b1.z, b1.w};
        #pragma unroll
        for (int i = 0; i < 8; ++i)
            #pragma unroll
            for (int j = 0; j < 8; ++j) acc[i][j] = fmaf(a[i], b[j], acc[i][j]);
    }
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
        const size_t row = m0 + (i / 4) * 64 + ty * 4 + i % 4;
        float* out = C + row * N + n0 + tx * 4;
        __stcs(reinterpret_cast<float4*>(out),
               make_float4(acc[i][0], acc[i][1], acc[i][2], acc[i][3]));
        __stcs(reinterpret_cast<float4*>(out + 64),
               make_float4(acc[i][4], acc[i][5], acc[i][6], acc[i][7]));
    }
}

torch::Tensor tall_skinny(torch::Tensor A, torch::Tensor B) {
    const int64_t M = A.size(0), K = A.size(1), N = B.size(1);
    if (K != KK || M % BM || N % BN || M / BM > 65535) return at::matmul(A, B);
    A = A.contiguous();
    B = B.contiguous();
    auto C = torch::empty({M, N}, A.options());
    outer_kernel<<<dim3(N / BN, M / BM), 256, 0, at::cuda::getCurrentCUDAStream()>>>(
        A.data_ptr<float>(), B.data_ptr<float>(), C.data_ptr<float>(), (int)M, (int)N);
    return C;
}
"""

ext = load_inline(
    name="tall_skinny_ext",
    cpp_sources="torch::Tensor tall_skinny(torch::Tensor A, torch::Tensor B);",
    cuda_sources=cuda_src,
    functions=["tall_skinny"],
    extra_cuda_cflags=["-O3"],
    verbose=False,
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, A, B):
        return ext.tall_skinny(A, B)
