import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_src = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cooperative_groups.h>

namespace cg = cooperative_groups;
constexpr int CLUSTER = 8, THREADS = 1024, VEC = 8;
constexpr int PLANE = CLUSTER * THREADS * VEC * 4;  // 512 * 512 floats

__device__ float cluster_sum(float v, float* warps, float* part, cg::cluster_group& cluster) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    #pragma unroll
    for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
    if (lane == 0) warps[warp] = v;
    __syncthreads();
    if (warp == 0) {
        v = warps[lane];
        #pragma unroll
        for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
        if (lane == 0) *part = v;
    }
    cluster.sync();
    float total = 0.f;
    #pragma unroll
    for (int r = 0; r < CLUSTER; ++r) total += *cluster.map_shared_rank(part, r);
    return total;
}

// A cluster of 8 blocks keeps a whole 512x512 plane in its registers (32 floats per thread):
// one read and one write of memory, and a true two-pass variance.
__global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
instance_norm_kernel(const float4* __restrict__ x, float4* __restrict__ y, float eps) {
    __shared__ float warps[32];
    __shared__ float part[2];
    cg::cluster_group cluster = cg::this_cluster();
    const size_t base = (size_t)blockIdx.x * (THREADS * VEC) + threadIdx.x;
    float4 v[VEC];
    #pragma unroll
    for (int i = 0; i < VEC; ++i) v[i] = __ldcs(x + base + i * THREADS);

    float s = 0.f;
    #pragma unroll
    for (int i = 0; i < VEC; ++i) s += (v[i].x + v[i].y) + (v[i].z + v[i].w);
    const float mean = cluster_sum(s, warps, &part[0], cluster) * (1.0f / PLANE);

    float q = 0.f;
    #pragma unroll
    for (int i = 0; i < VEC; ++i) {
        v[i].x -= mean; v[i].y -= mean; v[i].z -= mean; v[i].w -= mean;
        q += (v[i].x * v[i].x + v[i].y * v[i].y) + (v[i].z * v[i].z + v[i].w * v[i].w);
    }
    const float var = cluster_sum(q, warps, &part[1], cluster) * (1.0f / PLANE);
    const float r = rsqrtf(var + eps);
    #pragma unroll
    for (int i = 0; i < VEC; ++i)
        __stcs(y + base + i * THREADS,
               make_float4(v[i].x * r, v[i].y * r, v[i].z * r, v[i].w * r));
    cluster.sync();
}

torch::Tensor instance_norm(torch::Tensor x, double eps) {
    x = x.contiguous();
    const int64_t planes = x.size(0) * x.size(1), hw = x.size(2) * x.size(3);
    if (hw != PLANE) return at::instance_norm(x, {}, {}, {}, {}, true, 0.1, eps, true);
    auto y = torch::empty_like(x);
    instance_norm_kernel<<<planes * CLUSTER, THREADS, 0, at::cuda::getCurrentCUDAStream()>>>(
        reinterpret_cast<const float4*>(x.data_ptr<float>()),
        reinterpret_cast<float4*>(y.data_ptr<float>()), (float)eps);
    return y;
}
"""

ext = load_inline(
    name="instance_norm_cluster_ext",
    cpp_sources="torch::Tensor instance_norm(torch::Tensor x, double eps);",
    cuda_sources=cuda_src,
    functions=["instance_norm"],
    extra_cuda_cflags=["-O3"],
    verbose=False,
)


class ModelNew(nn.Module):
    def __init__(self, num_features: int):
        super().__init__()
        self.inorm = nn.InstanceNorm2d(num_features=num_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.instance_norm(x, self.inorm.eps)
