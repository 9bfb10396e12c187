import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

// The group norm's output is never written: its mean over channels and positions needs only the
// sum of each channel and the sum of squares of each group,
//   mean = 1/C * sum_c [ gamma_c * (mu_c - mu_g) * rstd_g + beta_c ].
// Block: one (sample, group).
constexpr int THREADS = 512;
constexpr int MAXC = 8;     // channels per group

__device__ __forceinline__ float block_sum(float v, float* sh) {
#pragma unroll
  for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
  __syncthreads();
  if ((threadIdx.x & 31) == 0) sh[threadIdx.x >> 5] = v;
  __syncthreads();
  float r = 0.f;
#pragma unroll
  for (int i = 0; i < THREADS / 32; ++i) r += sh[i];
  return r;
}

__global__ void __launch_bounds__(THREADS) group_stats(
    const float4* __restrict__ x, const float* __restrict__ gamma,
    const float* __restrict__ beta, float* __restrict__ out, int G, int CPG, int sp4, float eps) {
  __shared__ float sh[THREADS / 32];
  const int n = blockIdx.x / G, g = blockIdx.x % G;
  const float4* base = x + (size_t)blockIdx.x * CPG * sp4;
  float mu[MAXC];
  float total = 0.f;
  for (int c = 0; c < CPG; ++c) {
    float s = 0.f;
    for (int i = threadIdx.x; i < sp4; i += THREADS) {
      float4 v = base[(size_t)c * sp4 + i];
      s += (v.x + v.y) + (v.z + v.w);
    }
    mu[c] = block_sum(s, sh) / (sp4 * 4);
    total += mu[c];
  }
  const float mean = total / CPG;
  // second pass for the variance: the group is small enough to come from L2
  float q = 0.f;
  for (int i = threadIdx.x; i < CPG * sp4; i += THREADS) {
    float4 v = base[i];
    float a = v.x - mean, b = v.y - mean, c = v.z - mean, d = v.w - mean;
    q += a * a + b * b + c * c + d * d;
  }
  const float var = block_sum(q, sh) / ((float)CPG * sp4 * 4);
  if (threadIdx.x == 0) {
    const float rstd = rsqrtf(var + eps);
    float r = 0.f;
    for (int c = 0; c < CPG; ++c)
      r += gamma[g * CPG + c] * (mu[c] - mean) * rstd + beta[g * CPG + c];
    atomicAdd(out + n, r / (G * CPG));
  }
}

torch::Tensor gn_mean(torch::Tensor x, torch::Tensor gamma, torch::Tensor beta, int64_t groups,
                      double eps) {
  const int N = x.size(0), C = x.size(1);
  const int sp = x.size(2) * x.size(3) * x.size(4);
  TORCH_CHECK(sp % 4 == 0 && C / groups <= MAXC, "unsupported shape");
  auto out = torch::zeros({N}, x.options());
  group_stats<<<N * groups, THREADS, 0, at::cuda::getCurrentCUDAStream()>>>(
      reinterpret_cast<const float4*>(x.data_ptr<float>()), gamma.data_ptr<float>(),
      beta.data_ptr<float>(), out.data_ptr<float>(), groups, C / groups, sp / 4, (float)eps);
  return out;
}
"""
cpp_source = """
torch::Tensor gn_mean(torch::Tensor x, torch::Tensor gamma, torch::Tensor beta, int64_t groups,
                      double eps);
"""

ext = load_inline(name="groupnorm_mean", cpp_sources=cpp_source, cuda_sources=cuda_source,
                  functions=["gn_mean"], extra_cuda_cflags=["-O3"], verbose=False)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, num_groups):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.group_norm = nn.GroupNorm(num_groups, out_channels)

    def forward(self, x):
        y = self.conv(x).contiguous()
        gn = self.group_norm
        return ext.gn_mean(y, gn.weight, gn.bias, gn.num_groups, gn.eps)
