import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def col_stats_kernel(x_ptr, s_ptr, sum_ptr, sq_ptr, M, N, ROWS: tl.constexpr,
                     BM: tl.constexpr, BN: tl.constexpr):
    # Partial column sums over ROWS rows, written to a (chunks, N) buffer: no atomics.
    cols = tl.program_id(0) * BN + tl.arange(0, BN)
    chunk = tl.program_id(1)
    cm = cols < N
    scale = tl.load(s_ptr + cols, mask=cm, other=0.0)
    s = tl.zeros((BN,), dtype=tl.float32)
    q = tl.zeros((BN,), dtype=tl.float32)
    for r in range(0, ROWS, BM):
        rows = chunk * ROWS + r + tl.arange(0, BM)
        m = (rows < M)[:, None] & cm[None, :]
        x = tl.load(x_ptr + rows[:, None] * N + cols[None, :], mask=m, other=0.0)
        x = x * scale[None, :]
        s += tl.sum(x, axis=0)
        q += tl.sum(x * x, axis=0)
    tl.store(sum_ptr + chunk * N + cols, s, mask=cm)
    tl.store(sq_ptr + chunk * N + cols, q, mask=cm)


@triton.jit
def affine_kernel(x_ptr, a_ptr, b_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    cols = tl.program_id(0) * BN + tl.arange(0, BN)
    m = (rows < M)[:, None] & (cols < N)[None, :]
    a = tl.load(a_ptr + cols, mask=cols < N, other=0.0)
    b = tl.load(b_ptr + cols, mask=cols < N, other=0.0)
    p = x_ptr + rows[:, None] * N + cols[None, :]
    x = tl.load(p, mask=m, other=0.0)
    tl.store(p, x * a[None, :] + b[None, :], mask=m)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, scale_shape, eps=1e-5, momentum=0.1):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.scale = nn.Parameter(torch.randn(scale_shape))
        self.bn = nn.BatchNorm1d(out_features, eps=eps, momentum=momentum)

    @torch.no_grad()
    def forward(self, x):
        bn = self.bn
        y = self.gemm(x)
        M, N = y.shape
        if self.training:
            ROWS, BN = 256, 128
            chunks = triton.cdiv(M, ROWS)
            part = torch.empty((2, chunks, N), device=y.device, dtype=torch.float32)
            col_stats_kernel[(triton.cdiv(N, BN), chunks)](
                y, self.scale, part[0], part[1], M, N, ROWS=ROWS, BM=32, BN=BN, num_warps=4)
            tot = part.sum(dim=1)
            mean = tot[0] / M
            var = (tot[1] / M - mean * mean).clamp_(min=0)
            bn.running_mean.lerp_(mean, bn.momentum)
            bn.running_var.lerp_(var * (M / (M - 1)), bn.momentum)
            bn.num_batches_tracked.add_(1)
        else:
            mean, var = bn.running_mean, bn.running_var
        inv = torch.rsqrt(var + bn.eps) * bn.weight
        a = self.scale * inv
        b = bn.bias - mean * inv
        affine_kernel[(triton.cdiv(N, 256), triton.cdiv(M, 16))](y, a, b, M, N, BM=16, BN=256)
        return y
