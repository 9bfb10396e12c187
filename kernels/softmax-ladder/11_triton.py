"""The same in Triton: a program an SM, row after row, each row in chunks that it reads twice.

Idea: a dozen lines for the work. A row of 256 KB is more than a program can keep on chip without
clusters, so the first pass finds the largest value and the sum, chunk by chunk, and the second
writes. With one program an SM the rows at work are 34 MB: L2 may still hold them when they are read
again.
Prediction: 150% of the library, 1.03 ms, 69% of the speed of a copy: the second reads come from L2,
but a program only reads in its first pass, and waits for its reductions.
Measured: 1.02 ms on an H100, 143% of the library, 70% of the speed of a copy: the time as
predicted, beside a library of 1.47 ms (1.52 to 1.60 ms beside other rungs). Two reads and a write
from memory would be 3.16 TB/s, faster than a copy: some of the second reads came from L2. Rung 10
takes 0.79 ms.
Sizes: all.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x, out, rows, columns, CHUNK: tl.constexpr):
    nothing = float("-inf")
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        start = tl.cast(row, tl.int64) * columns
        largest = nothing
        total = 0.0
        for first in range(0, columns, CHUNK):
            at = first + tl.arange(0, CHUNK)
            value = tl.load(x + start + at, mask=at < columns, other=nothing)
            larger = tl.maximum(largest, tl.max(value, axis=0))
            # Minus infinity minus itself is no number.
            base = tl.where(larger == nothing, 0.0, larger)
            total = total * tl.exp(largest - base) + tl.sum(tl.exp(value - base), axis=0)
            largest = larger
        for first in range(0, columns, CHUNK):
            at = first + tl.arange(0, CHUNK)
            value = tl.load(
                x + start + at, mask=at < columns, other=nothing, eviction_policy="evict_first"
            )
            result = tl.exp(value - largest) / total
            tl.store(out + start + at, result, mask=at < columns, eviction_policy="evict_first")


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (rows, columns), contiguous. Returns the softmax of each row."""
        rows, columns = x.shape
        out = torch.empty_like(x)
        programs = torch.cuda.get_device_properties(x.device).multi_processor_count
        softmax[(min(rows, programs),)](x, out, rows, columns, CHUNK=16384, num_warps=32)
        return out
