import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

# One kernel for scale + batch norm (batch statistics + normalisation + running statistics).
# Every block owns 32 columns; the second pass over them hits L2.
cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

#define TX 32
#define TY 32

__global__ void scale_bn_train(float* __restrict__ x, const float* __restrict__ scale,
                               const float* __restrict__ gamma, const float* __restrict__ beta,
                               float* __restrict__ rmean, float* __restrict__ rvar,
                               int rows, int cols, float eps, float momentum) {
    __shared__ float ssum[TY][TX + 1], ssq[TY][TX + 1];
    __shared__ float sa[TX], sb[TX];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int col = blockIdx.x * TX + tx;
    const bool ok = col < cols;
    const float sc = ok ? scale[col] : 0.f;
    // Shifted by the first row's value, so that the one pass variance does not cancel.
    const float k = ok ? x[col] * sc : 0.f;

    float s = 0.f, q = 0.f;
    if (ok) {
#pragma unroll 4
        for (int r = ty; r < rows; r += TY) {
            float d = x[(size_t)r * cols + col] * sc - k;
            s += d;
            q += d * d;
        }
    }
    ssum[ty][tx] = s;
    ssq[ty][tx] = q;
    __syncthreads();
    for (int o = TY / 2; o > 0; o >>= 1) {
        if (ty < o) {
            ssum[ty][tx] += ssum[ty + o][tx];
            ssq[ty][tx] += ssq[ty + o][tx];
        }
        __syncthreads();
    }
    if (ty == 0 && ok) {
        float m = ssum[0][tx] / rows;
        float var = fmaxf(ssq[0][tx] / rows - m * m, 0.f);
        float mean = m + k;
        float inv = rsqrtf(var + eps) * gamma[col];
        sa[tx] = sc * inv;
        sb[tx] = beta[col] - mean * inv;
        rmean[col] = (1.f - momentum) * rmean[col] + momentum * mean;
        rvar[col] = (1.f - momentum) * rvar[col] + momentum * var * rows / (rows - 1.f);
    }
    __syncthreads();
    if (!ok) return;
    const float a = sa[tx], b = sb[tx];
#pragma unroll 4
    for (int r = ty; r < rows; r += TY) {
        size_t i = (size_t)r * cols + col;
        x[i] = fmaf(x[i], a, b);
    }
}

torch::Tensor scale_bn(torch::Tensor x, torch::Tensor scale, torch::Tensor gamma,
                       torch::Tensor beta, torch::Tensor rmean, torch::Tensor rvar,
                       double eps, double momentum) {
    const int rows = x.size(0), cols = x.size(1);
    scale_bn_train<<<(cols + TX - 1) / TX, dim3(TX, TY), 0, at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), scale.data_ptr<float>(), gamma.data_ptr<float>(),
        beta.data_ptr<float>(), rmean.data_ptr<float>(), rvar.data_ptr<float>(), rows, cols,
        (float)eps, (float)momentum);
    return x;
}
"""

cpp_source = """
torch::Tensor scale_bn(torch::Tensor x, torch::Tensor scale, torch::Tensor gamma,
                       torch::Tensor beta, torch::Tensor rmean, torch::Tensor rvar,
                       double eps, double momentum);
"""

ext = load_inline(name="scale_bn_ext", cpp_sources=cpp_source, cuda_sources=cuda_source,
                  functions=["scale_bn"], verbose=False)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, scale_shape, eps=1e-5, momentum=0.1):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.scale = nn.Parameter(torch.randn(scale_shape))
        self.bn = nn.BatchNorm1d(out_features, eps=eps, momentum=momentum)

    def forward(self, x):
        bn = self.bn
        if not self.training:
            a = bn.weight * torch.rsqrt(bn.running_var + bn.eps)
            b = bn.bias - bn.running_mean * a
            return torch.addcmul(b, self.gemm(x), self.scale * a)
        with torch.no_grad():
            y = self.gemm(x)
            bn.num_batches_tracked += 1
            return ext.scale_bn(y, self.scale, bn.weight, bn.bias, bn.running_mean,
                                bn.running_var, bn.eps, bn.momentum)
