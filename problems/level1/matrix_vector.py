"""Product of a matrix and a vector: a dot product a row."""

import torch
import torch.nn as nn

ROWS = 2048
COLUMNS = 2048


class Model(nn.Module):
    def forward(self, a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """a: (ROWS, COLUMNS), x: (COLUMNS). Returns (ROWS)."""
        return torch.mv(a, x)


def get_inputs():
    return [torch.randn(ROWS, COLUMNS), torch.randn(COLUMNS)]


def get_init_inputs():
    return []
