"""Softmax in Triton, on a GPU: one program a row, which stays there between one read and one write.

Idea: a row fits into the registers of one program, so its maximum, its sum and the result need no
second read. Triton chooses who holds which column.
"""

# expected: faster at small

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_row(x, out, columns, WIDTH: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, WIDTH)
    inside = column < columns
    values = tl.load(x + row * columns + column, mask=inside, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * columns + column, powers / tl.sum(powers, axis=0), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (rows, columns), contiguous. Returns the same shape."""
        rows, columns = x.shape
        out = torch.empty_like(x)
        width = triton.next_power_of_2(columns)
        softmax_row[(rows,)](x, out, columns, WIDTH=width, num_warps=min(16, max(4, width // 512)))
        return out
