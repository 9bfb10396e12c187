import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mean_kernel(
    x_ptr, y_ptr, R, inner,
    BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr,
):
    outer = tl.program_id(1).to(tl.int64)
    cols = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    rows = tl.arange(0, BLOCK_R)
    col_mask = cols < inner
    ptrs = x_ptr + outer * R * inner + rows[:, None] * inner + cols[None, :]
    acc = tl.zeros((BLOCK_R, BLOCK_C), dtype=tl.float32)
    for start in range(0, R, BLOCK_R):
        mask = (rows[:, None] + start < R) & col_mask[None, :]
        acc += tl.load(ptrs, mask=mask, other=0.0)
        ptrs += BLOCK_R * inner
    total = tl.sum(acc, axis=0) / R
    tl.store(y_ptr + outer * inner + cols, total, mask=col_mask)


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        dim = self.dim % x.dim()
        shape = list(x.shape)
        outer, inner = 1, 1
        for size in shape[:dim]:
            outer *= size
        for size in shape[dim + 1:]:
            inner *= size
        y = torch.empty(shape[:dim] + shape[dim + 1:], device=x.device, dtype=x.dtype)
        BLOCK_R, BLOCK_C = 32, 128
        grid = (triton.cdiv(inner, BLOCK_C), outer)
        mean_kernel[grid](
            x, y, shape[dim], inner,
            BLOCK_R=BLOCK_R, BLOCK_C=BLOCK_C, num_warps=4, num_stages=4,
        )
        return y
