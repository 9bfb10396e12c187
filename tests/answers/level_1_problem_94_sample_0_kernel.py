import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mse_partial_kernel(p_ptr, t_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    n_prog = tl.num_programs(0)
    offs = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    start = pid * BLOCK
    step = n_prog.to(tl.int64) * BLOCK
    while start < n:
        idx = start + offs
        mask = idx < n
        p = tl.load(p_ptr + idx, mask=mask, other=0.0)
        t = tl.load(t_ptr + idx, mask=mask, other=0.0)
        d = p - t
        acc += d * d
        start += step
    tl.store(out_ptr + pid, tl.sum(acc, axis=0))


@triton.jit
def final_kernel(part_ptr, out_ptr, n_part, inv_n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    v = tl.load(part_ptr + offs, mask=offs < n_part, other=0.0)
    tl.store(out_ptr, tl.sum(v, axis=0) * inv_n)


class ModelNew(nn.Module):
    """Mean squared error in one pass over both tensors, then a tiny second reduction."""

    def __init__(self):
        super().__init__()

    def forward(self, predictions, targets):
        p = predictions.contiguous()
        t = targets.contiguous()
        n = p.numel()
        n_part = 132 * 8
        part = torch.empty(n_part, device=p.device, dtype=torch.float32)
        out = torch.empty((), device=p.device, dtype=torch.float32)
        mse_partial_kernel[(n_part,)](p, t, part, n, BLOCK=4096, num_warps=8)
        final_kernel[(1,)](part, out, n_part, 1.0 / n,
                           BLOCK=triton.next_power_of_2(n_part), num_warps=4)
        return out
