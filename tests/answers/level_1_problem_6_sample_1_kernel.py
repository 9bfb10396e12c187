import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def splitk_matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr,
):
    pid_n = tl.program_id(0)
    pid_m = tl.program_id(1)
    pid_k = tl.program_id(2)
    k_per = tl.cdiv(K, SPLIT)
    k_beg = pid_k * k_per

    offs_m = pid_m * BM + tl.arange(0, BM)
    offs_n = pid_n * BN + tl.arange(0, BN)
    offs_k = k_beg + tl.arange(0, BK)
    a_ptrs = a_ptr + offs_m[:, None].to(tl.int64) * K + offs_k[None, :]
    b_ptrs = b_ptr + offs_k[:, None].to(tl.int64) * N + offs_n[None, :]

    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, k_per, BK):
        a = tl.load(a_ptrs)
        b = tl.load(b_ptrs)
        acc = tl.dot(a, b, acc, input_precision="tf32")
        a_ptrs += BK
        b_ptrs += BK * N
    tl.atomic_add(c_ptr + offs_m[:, None] * N + offs_n[None, :], acc, sem="relaxed")


class ModelNew(nn.Module):
    """Split-K product: the slices of K add their partial tiles with float32 atomics."""

    def __init__(self):
        super().__init__()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        M, K = A.shape
        N = B.shape[1]
        BM, BN, BK, SPLIT = 128, 128, 32, 64
        if M % BM or N % BN or K % (BK * SPLIT):
            return torch.matmul(A, B)
        A = A.contiguous()
        B = B.contiguous()
        C = torch.zeros((M, N), device=A.device, dtype=torch.float32)
        splitk_matmul_kernel[(N // BN, M // BM, SPLIT)](
            A, B, C, M, N, K, BM=BM, BN=BN, BK=BK, SPLIT=SPLIT, num_warps=8, num_stages=4
        )
        return C
