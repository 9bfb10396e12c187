import torch
import torch.nn as nn
import triton
import triton.language as tl


# The GEMM runs on the tensor cores with the three-product TF32 split, which keeps about the
# accuracy of float32; sigmoid, scaling and residual are its epilogue.
@triton.jit
def gemm_sigmoid_residual(x_ptr, w_ptr, b_ptr, o_ptr, M, N, K, scale,
                          sxm, swn, som,
                          BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                          GROUP: tl.constexpr):
    pid = tl.program_id(0)
    n_m = tl.cdiv(M, BM)
    n_n = tl.cdiv(N, BN)
    group = pid // (GROUP * n_n)
    first_m = group * GROUP
    rows = min(n_m - first_m, GROUP)
    pid_m = first_m + ((pid % (GROUP * n_n)) % rows)
    pid_n = (pid % (GROUP * n_n)) // rows

    offs_m = pid_m * BM + tl.arange(0, BM)
    offs_n = pid_n * BN + tl.arange(0, BN)
    offs_k = tl.arange(0, BK)
    x_ptrs = x_ptr + offs_m[:, None] * sxm + offs_k[None, :]
    w_ptrs = w_ptr + offs_n[None, :] * swn + offs_k[:, None]

    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        km = offs_k < K - k
        a = tl.load(x_ptrs, mask=(offs_m[:, None] < M) & km[None, :], other=0.0)
        b = tl.load(w_ptrs, mask=(offs_n[None, :] < N) & km[:, None], other=0.0)
        acc += tl.dot(a, b, input_precision="tf32x3")
        x_ptrs += BK
        w_ptrs += BK

    acc += tl.load(b_ptr + offs_n, mask=offs_n < N, other=0.0)[None, :]
    acc = acc + scale * tl.sigmoid(acc)
    o = o_ptr + offs_m[:, None] * som + offs_n[None, :]
    tl.store(o, acc, mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


class ModelNew(nn.Module):
    def __init__(self, input_size, hidden_size, scaling_factor):
        super().__init__()
        self.gemm = nn.Linear(input_size, hidden_size)
        self.scaling_factor = scaling_factor

    def forward(self, x):
        x = x.contiguous()
        w = self.gemm.weight
        M, K = x.shape
        N = w.shape[0]
        out = torch.empty(M, N, device=x.device, dtype=x.dtype)
        BM, BN, BK = 128, 128, 32
        grid = (triton.cdiv(M, BM) * triton.cdiv(N, BN),)
        gemm_sigmoid_residual[grid](
            x, w, self.gemm.bias, out, M, N, K, float(self.scaling_factor),
            x.stride(0), w.stride(0), out.stride(0),
            BM=BM, BN=BN, BK=BK, GROUP=8, num_warps=8, num_stages=3,
        )
        return out
