"""Product of two dense matrices: C = A B."""

import torch
import torch.nn as nn

ROWS = 512
INNER = 512
COLUMNS = 512


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """a: (ROWS, INNER), b: (INNER, COLUMNS). Returns (ROWS, COLUMNS)."""
        return torch.matmul(a, b)


def get_inputs():
    return [torch.randn(ROWS, INNER), torch.randn(INNER, COLUMNS)]


def get_init_inputs():
    return []
