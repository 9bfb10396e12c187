"""Products of many small matrices: C[i] = A[i] B[i] for every i of a batch."""

import torch
import torch.nn as nn

BATCH = 128
ROWS = 96
INNER = 64
COLUMNS = 96


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """a: (BATCH, ROWS, INNER), b: (BATCH, INNER, COLUMNS). Returns (BATCH, ROWS, COLUMNS)."""
        return torch.bmm(a, b)


def get_inputs():
    return [torch.randn(BATCH, ROWS, INNER), torch.randn(BATCH, INNER, COLUMNS)]


def get_init_inputs():
    return []
