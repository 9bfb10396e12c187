"""A matrix times a vector, both in NVFP4.

A number has four bits (e2m1: 0, 0.5, 1, 1.5, 2, 3, 4 or 6, and a sign), and 16 neighbours share a
scale of eight bits (e4m3). A byte of `packed` holds two neighbours, the first in its lower half.
All codes occur, signs and subnormal numbers included; scales are drawn from 0 to 448, without NaN.
"""

import torch
import torch.nn as nn

BATCH = 1
ROWS = 512
GROUPS = 16


def numbers_of(packed, dtype):
    """Two numbers a byte, e2m1."""
    codes = torch.stack([packed & 15, torch.bitwise_right_shift(packed, 4)], dim=-1).flatten(-2)
    code = codes & 7
    # In quarters: subnormal below 2, then a leading 1, a bit, and an exponent.
    normal = torch.bitwise_left_shift(2 + (code & 1), torch.bitwise_right_shift(code, 1))
    quarters = torch.where(code < 2, 2 * code, normal).to(dtype)
    return torch.where(codes < 8, quarters, -quarters) / 4


def scales_of(codes, dtype):
    """A number a byte, e4m3."""
    codes = codes.int()
    exponent, bits = torch.bitwise_right_shift(codes, 3) & 15, codes & 7
    # In 1024ths.
    normal = torch.bitwise_left_shift(8 + bits, exponent)
    parts = torch.where(exponent == 0, 2 * bits, normal).to(dtype)
    return torch.where(codes < 128, parts, -parts) / 1024


class Model(nn.Module):
    def forward(
        self,
        packed: torch.Tensor,
        scales: torch.Tensor,
        x_packed: torch.Tensor,
        x_scales: torch.Tensor,
        factor: torch.Tensor,
    ) -> torch.Tensor:
        """packed: (BATCH, ROWS, FEATURES / 2), scales: (BATCH, ROWS, FEATURES / 16), x_packed:
        (BATCH, FEATURES / 2), x_scales: (BATCH, FEATURES / 16), all uint8, factor: (BATCH), the
        product of the two tensors' own scales.

        Returns (BATCH, ROWS). FEATURES is 64 * GROUPS.
        """
        dtype = factor.dtype
        weight = numbers_of(packed, dtype).unflatten(-1, (-1, 16))
        weight = (weight * scales_of(scales, dtype).unsqueeze(-1)).flatten(-2)
        x = numbers_of(x_packed, dtype).unflatten(-1, (-1, 16))
        x = (x * scales_of(x_scales, dtype).unsqueeze(-1)).flatten(-2)
        return torch.matmul(weight, x.unsqueeze(-1)).squeeze(-1) * factor.unsqueeze(-1)


def get_inputs():
    features = 64 * GROUPS
    return [
        torch.randint(256, (BATCH, ROWS, features // 2), dtype=torch.uint8),
        torch.randint(127, (BATCH, ROWS, features // 16), dtype=torch.uint8),
        torch.randint(256, (BATCH, features // 2), dtype=torch.uint8),
        torch.randint(127, (BATCH, features // 16), dtype=torch.uint8),
        0.001 + 0.001 * torch.rand(BATCH),
    ]


def get_init_inputs():
    return []
