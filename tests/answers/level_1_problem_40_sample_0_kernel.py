import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_src = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

constexpr int THREADS = 256, CHUNKS = 256;

// Merge of two (count, mean, M2) triples after Chan et al.
__device__ __forceinline__ void merge(float& n, float& mean, float& m2, float nb, float mb,
                                      float qb) {
    const float tot = n + nb;
    if (tot == 0.f) return;
    const float delta = mb - mean;
    mean += delta * (nb / tot);
    m2 += qb + delta * delta * (n * nb / tot);
    n = tot;
}

__device__ void block_merge(float& n, float& mean, float& m2) {
    __shared__ float sn[8], sm[8], sq[8];
    for (int o = 16; o > 0; o >>= 1) {
        const float nb = __shfl_xor_sync(0xffffffffu, n, o);
        const float mb = __shfl_xor_sync(0xffffffffu, mean, o);
        const float qb = __shfl_xor_sync(0xffffffffu, m2, o);
        merge(n, mean, m2, nb, mb, qb);
    }
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    if (lane == 0) { sn[warp] = n; sm[warp] = mean; sq[warp] = m2; }
    __syncthreads();
    n = sn[0]; mean = sm[0]; m2 = sq[0];
    for (int w = 1; w < THREADS / 32; ++w) merge(n, mean, m2, sn[w], sm[w], sq[w]);
}

// Few long rows: every row is cut in 256 chunks, one block each.
__global__ void stats_kernel(const float4* __restrict__ x, float3* __restrict__ part, int chunk4,
                             int row4) {
    const float4* p = x + (size_t)blockIdx.y * row4 + (size_t)blockIdx.x * chunk4;
    const int len = min(chunk4, row4 - (int)blockIdx.x * chunk4);
    float s = 0.f, q = 0.f, n = 0.f;
    #pragma unroll 4
    for (int i = threadIdx.x; i < len; i += THREADS) {
        const float4 v = p[i];
        s += (v.x + v.y) + (v.z + v.w);
        q += (v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w);
        n += 4.f;
    }
    float mean = n > 0.f ? s / n : 0.f;
    float m2 = fmaxf(q - s * mean, 0.f);
    block_merge(n, mean, m2);
    if (threadIdx.x == 0) part[blockIdx.y * CHUNKS + blockIdx.x] = make_float3(n, mean, m2);
}

// Rows vary fastest over the blocks, so that weight and bias come from L2 after their first use.
__global__ void norm_kernel(const float4* __restrict__ x, const float4* __restrict__ w,
                            const float4* __restrict__ b, const float3* __restrict__ part,
                            float4* __restrict__ y, int chunk4, int row4, float eps) {
    const int row = blockIdx.x;
    const float3 t = part[row * CHUNKS + threadIdx.x];
    float n = t.x, mean = t.y, m2 = t.z;
    block_merge(n, mean, m2);
    const float r = rsqrtf(m2 / n + eps);
    const int begin = blockIdx.y * chunk4, end = min(begin + chunk4, row4);
    #pragma unroll 2
    for (int i = begin + threadIdx.x; i < end; i += THREADS) {
        const float4 v = x[(size_t)row * row4 + i];
        const float4 ww = __ldg(w + i), bb = __ldg(b + i);
        y[(size_t)row * row4 + i] =
            make_float4((v.x - mean) * r * ww.x + bb.x, (v.y - mean) * r * ww.y + bb.y,
                        (v.z - mean) * r * ww.z + bb.z, (v.w - mean) * r * ww.w + bb.w);
    }
}

torch::Tensor layer_norm(torch::Tensor x, torch::Tensor w, torch::Tensor b, double eps) {
    x = x.contiguous();
    const int64_t len = w.numel(), rows = x.numel() / len;
    TORCH_CHECK(len % 4 == 0, "normalized size must be a multiple of 4");
    auto y = torch::empty_like(x);
    auto part = torch::empty({rows * CHUNKS * 3}, x.options());
    const int row4 = len / 4, chunk4 = (row4 + CHUNKS - 1) / CHUNKS;
    auto st = at::cuda::getCurrentCUDAStream();
    auto v4 = [](const torch::Tensor& t) {
        return reinterpret_cast<const float4*>(t.data_ptr<float>());
    };
    float3* pp = reinterpret_cast<float3*>(part.data_ptr<float>());
    stats_kernel<<<dim3(CHUNKS, rows), THREADS, 0, st>>>(v4(x), pp, chunk4, row4);
    norm_kernel<<<dim3(rows, CHUNKS), THREADS, 0, st>>>(
        v4(x), v4(w), v4(b), pp, reinterpret_cast<float4*>(y.data_ptr<float>()), chunk4, row4,
        (float)eps);
    return y;
}
"""

ext = load_inline(
    name="layer_norm_split_ext",
    cpp_sources=(
        "torch::Tensor layer_norm(torch::Tensor x, torch::Tensor w, torch::Tensor b, double eps);"
    ),
    cuda_sources=cuda_src,
    functions=["layer_norm"],
    extra_cuda_cflags=["-O3"],
    verbose=False,
)


class ModelNew(nn.Module):
    def __init__(self, normalized_shape: tuple):
        super().__init__()
        self.ln = nn.LayerNorm(normalized_shape=normalized_shape)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.layer_norm(x, self.ln.weight.detach(), self.ln.bias.detach(), self.ln.eps)
