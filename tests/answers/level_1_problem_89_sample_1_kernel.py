import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def cumsum_kernel(x_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_row = x_ptr + row * n_cols
    y_row = y_ptr + row * n_cols
    offs = tl.arange(0, BLOCK)
    carry = 0.0
    for start in range(0, n_cols, BLOCK):
        idx = start + offs
        mask = idx < n_cols
        v = tl.load(x_row + idx, mask=mask, other=0.0, eviction_policy="evict_first")
        c = tl.cumsum(v, axis=0) + carry
        tl.store(y_row + idx, c, mask=mask)
        carry += tl.sum(v, axis=0)


class ModelNew(nn.Module):
    """Cumulative sum along one dimension; each program scans one row block by block."""

    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        moved = self.dim % x.dim() != x.dim() - 1
        if moved:
            x = x.transpose(self.dim, -1)
        x = x.contiguous()
        y = torch.empty_like(x)
        n_cols = x.shape[-1]
        n_rows = x.numel() // n_cols
        BLOCK = min(4096, triton.next_power_of_2(n_cols))
        cumsum_kernel[(n_rows,)](x, y, n_cols, BLOCK=BLOCK, num_warps=8, num_stages=3)
        return y.transpose(self.dim, -1) if moved else y
