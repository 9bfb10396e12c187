import torch
import torch.nn as nn
import triton
import triton.language as tl


def _configs():
    out = []
    for bm, bn, bk, st, nw in [(128, 256, 32, 3, 8), (128, 128, 32, 4, 8), (128, 128, 64, 3, 8),
                               (64, 256, 32, 4, 8), (128, 64, 64, 4, 4), (256, 128, 32, 3, 8)]:
        out.append(triton.Config({"BM": bm, "BN": bn, "BK": bk, "GROUP": 8}, num_stages=st,
                                 num_warps=nw))
    return out


@triton.autotune(configs=_configs(), key=["M", "N", "K"])
@triton.jit
def gemm_relu_div(a_ptr, w_ptr, b_ptr, c_ptr, M, N, K, inv_div,
                  BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    pid = tl.program_id(0)
    gm, gn = tl.cdiv(M, BM), tl.cdiv(N, BN)
    # Grouped order, so that neighbouring programs share their row blocks in L2.
    per = GROUP * gn
    first = (pid // per) * GROUP
    size = min(gm - first, GROUP)
    pm = first + (pid % per) % size
    pn = (pid % per) // size

    rm = (pm * BM + tl.arange(0, BM)) % M
    rn = (pn * BN + tl.arange(0, BN)) % N
    rk = tl.arange(0, BK)
    ap = a_ptr + rm[:, None] * K + rk[None, :]
    wp = w_ptr + rn[None, :] * K + rk[:, None]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        left = K - k * BK
        a = tl.load(ap, mask=rk[None, :] < left, other=0.0)
        w = tl.load(wp, mask=rk[:, None] < left, other=0.0)
        acc = tl.dot(a, w, acc, input_precision="tf32")
        ap += BK
        wp += BK
    acc += tl.load(b_ptr + rn)[None, :]
    acc = tl.maximum(acc, 0.0) * inv_div
    om = pm * BM + tl.arange(0, BM)
    on = pn * BN + tl.arange(0, BN)
    tl.store(c_ptr + om[:, None] * N + on[None, :], acc,
             mask=(om[:, None] < M) & (on[None, :] < N))


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, divisor):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.divisor = divisor

    def forward(self, x):
        x = x.contiguous()
        M, K = x.shape
        N = self.linear.out_features
        out = torch.empty((M, N), device=x.device, dtype=torch.float32)
        grid = lambda m: (triton.cdiv(M, m["BM"]) * triton.cdiv(N, m["BN"]),)
        gemm_relu_div[grid](x, self.linear.weight, self.linear.bias, out, M, N, K,
                            1.0 / self.divisor)
        return out
