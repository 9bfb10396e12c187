import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"BN": 128, "BK": 32}, num_warps=8, num_stages=4),
        triton.Config({"BN": 128, "BK": 64}, num_warps=8, num_stages=3),
        triton.Config({"BN": 256, "BK": 32}, num_warps=8, num_stages=3),
        triton.Config({"BN": 64, "BK": 64}, num_warps=4, num_stages=4),
    ],
    key=["M", "N", "K"],
)
@triton.jit
def linear_swish_kernel(x_ptr, w_ptr, b_ptr, o_ptr, M, N, K, scale,
                        BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # The batch fits one row block, so every weight is read from memory exactly once.
    rm = tl.program_id(1) * BM + tl.arange(0, BM)
    rn = tl.program_id(0) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    xp = x_ptr + rm[:, None] * K + rk[None, :]
    wp = w_ptr + rn[None, :] * K + rk[:, None]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        a = tl.load(xp, mask=rm[:, None] < M, other=0.0)
        b = tl.load(wp, mask=rn[None, :] < N, other=0.0)
        acc = tl.dot(a, b, acc)
        xp += BK
        wp += BK
    acc += tl.load(b_ptr + rn, mask=rn < N, other=0.0)[None, :]
    acc = acc * tl.sigmoid(acc) * scale
    tl.store(o_ptr + rm[:, None] * N + rn[None, :], acc,
             mask=(rm[:, None] < M) & (rn[None, :] < N))


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, scaling_factor):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.scaling_factor = scaling_factor

    def forward(self, x):
        x = x.contiguous()
        M, K = x.shape
        N = self.matmul.weight.shape[0]
        out = torch.empty((M, N), device=x.device, dtype=x.dtype)
        BM = 128
        grid = lambda meta: (triton.cdiv(N, meta["BN"]), triton.cdiv(M, BM))
        linear_swish_kernel[grid](x, self.matmul.weight, self.matmul.bias, out, M, N, K,
                                  self.scaling_factor, BM=BM)
        return out
