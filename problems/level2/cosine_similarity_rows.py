"""The cosine of the angle between every row of one matrix and every row of another.

Rows are brought to length 1, then multiplied; the lengths can be divided out after the product.
"""

import torch
import torch.nn as nn
import torch.nn.functional as functional

ROWS = 512
COLUMNS = 512
FEATURES = 256


class Model(nn.Module):
    def forward(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        """left: (ROWS, FEATURES), right: (COLUMNS, FEATURES). Returns (ROWS, COLUMNS)."""
        left = functional.normalize(left, dim=-1)
        return torch.matmul(left, functional.normalize(right, dim=-1).transpose(0, 1))


def get_inputs():
    # Rows of different lengths, so that the normalisation matters.
    return [
        torch.randn(ROWS, FEATURES) * (0.25 + 2.0 * torch.rand(ROWS, 1)),
        torch.randn(COLUMNS, FEATURES) * (0.25 + 2.0 * torch.rand(COLUMNS, 1)),
    ]


def get_init_inputs():
    return []
