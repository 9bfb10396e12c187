"""Product of a tall, narrow matrix and a small one: C = A B, with far more rows than columns in A.

Each element of A is used only COLUMNS times, so reading A and writing C take much of the time.
"""

import torch
import torch.nn as nn

ROWS = 32768
INNER = 64
COLUMNS = 32


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """a: (ROWS, INNER), b: (INNER, COLUMNS). Returns (ROWS, COLUMNS)."""
        return torch.matmul(a, b)


def get_inputs():
    return [torch.randn(ROWS, INNER), torch.randn(INNER, COLUMNS)]


def get_init_inputs():
    return []
