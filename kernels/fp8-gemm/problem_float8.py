"""A product of two matrices in float8 (e4m3), with a scale for each block, rounded to bfloat16.

128 neighbours of a row of `a` share a scale, as do 128 x 128 elements of `b`: C = A B^T, where an
element of A is (element of a) * (its scale), and of B likewise. NaN does not occur in a and b. A
PyTorch that has block-scaled products (2.10 and later, on Hopper) uses them, else both matrices
are written out in float32. LIBRARY = 0 leaves the block-scaled product out.
"""

import torch
import torch.nn as nn
import torch.nn.functional as functional

ROWS = 4096
INNER_BLOCKS = 32
COLUMN_BLOCKS = 32
LIBRARY = 1
BLOCK = 128
NAN_CODES = (127, 255)


def has_block_scales(a, inner_blocks):
    """True if PyTorch's block-scaled product takes these sizes."""
    return (
        LIBRARY == 1
        and a.is_cuda
        and hasattr(functional, "scaled_mm")
        and torch.cuda.get_device_capability(a.device) == (9, 0)
        and a.shape[0] % 16 == 0
        and inner_blocks % 4 == 0
    )


def block_scaled(a, a_scales, b, b_scales):
    kinds = functional.ScalingType
    return functional.scaled_mm(
        a,
        b.t(),
        a_scales.t(),
        kinds.BlockWise1x128,
        b_scales.t(),
        kinds.BlockWise128x128,
        output_dtype=torch.bfloat16,
    )


def written_out(a, a_scales, b, b_scales):
    """The product of both matrices in the scales' dtype."""
    rows, inner = a.shape
    columns = b.shape[0]
    blocks = inner // BLOCK
    a = a.to(a_scales.dtype).view(rows, blocks, BLOCK) * a_scales.t().unsqueeze(-1)
    b = b.to(b_scales.dtype).view(-1, BLOCK, blocks, BLOCK) * b_scales[:, None, :, None]
    return functional.linear(a.reshape(rows, inner), b.reshape(columns, inner))


class Model(nn.Module):
    def forward(
        self, a: torch.Tensor, a_scales: torch.Tensor, b: torch.Tensor, b_scales: torch.Tensor
    ) -> torch.Tensor:
        """a: (ROWS, INNER), e4m3, a_scales: (INNER / 128, ROWS), float32,
        b: (COLUMNS, INNER), e4m3, b_scales: (COLUMNS / 128, INNER / 128), float32.

        Returns (ROWS, COLUMNS) in bfloat16.
        """
        if a_scales.dtype == torch.float64:
            return written_out(a, a_scales, b, b_scales)
        if has_block_scales(a, a_scales.shape[0]):
            return block_scaled(a, a_scales, b, b_scales)
        return written_out(a, a_scales, b, b_scales).to(torch.bfloat16)


def random_codes(*shape):
    """Every e4m3 number is as likely as any other; NaN does not occur."""
    codes = torch.randint(254, shape, dtype=torch.uint8)
    return codes + (codes >= NAN_CODES[0])


def random_scales(*shape):
    return (0.5 + torch.rand(shape)) / BLOCK


def get_inputs():
    inner = INNER_BLOCKS * BLOCK
    return [
        random_codes(ROWS, inner).view(torch.float8_e4m3fn),
        random_scales(INNER_BLOCKS, ROWS),
        random_codes(COLUMN_BLOCKS * BLOCK, inner).view(torch.float8_e4m3fn),
        random_scales(COLUMN_BLOCKS, INNER_BLOCKS),
    ]


def get_init_inputs():
    return []
