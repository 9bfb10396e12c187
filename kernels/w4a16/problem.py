"""A product with weights of four bits and activations in bfloat16.

A weight is (its four bits - the zero of its group) * the scale of its group; a group is GROUP
neighbours of a row. A byte of `packed` holds two neighbours of a row, the first in its lower half.
With few rows of x, as in steps of decoding, it is a problem of memory: a quarter of the bytes that
weights in bfloat16 have, if they are not written anywhere once they are unpacked.
"""

import torch
import torch.nn as nn
import torch.nn.functional as functional

ROWS = 1
GROUPS = 32
GROUP = 128
OUTPUTS = 12288
DTYPE = torch.bfloat16


class Model(nn.Module):
    def forward(
        self, x: torch.Tensor, packed: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor
    ) -> torch.Tensor:
        """x: (ROWS, FEATURES), packed: (OUTPUTS, FEATURES / 2), uint8, scales: (OUTPUTS, GROUPS),
        zeros: (OUTPUTS, GROUPS), uint8, from 0 to 15.

        Returns (ROWS, OUTPUTS). FEATURES is GROUPS * GROUP.
        """
        outputs, groups = scales.shape
        halves = [packed & 15, torch.bitwise_right_shift(packed, 4)]
        fours = torch.stack(halves, dim=-1).view(outputs, groups, -1)
        # Exact in every dtype: differences of whole numbers below 16.
        differences = fours.to(scales.dtype) - zeros.to(scales.dtype).unsqueeze(-1)
        weight = (differences * scales.unsqueeze(-1)).view(outputs, -1)
        return functional.linear(x, weight)


def get_inputs():
    features = GROUPS * GROUP
    scales = 0.005 + 0.01 * torch.rand(OUTPUTS, GROUPS)
    return [
        torch.randn(ROWS, features).to(DTYPE),
        torch.randint(256, (OUTPUTS, features // 2), dtype=torch.uint8),
        scales.to(DTYPE),
        torch.randint(16, (OUTPUTS, GROUPS), dtype=torch.uint8),
    ]


def get_init_inputs():
    return []
