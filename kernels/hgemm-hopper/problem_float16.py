"""A linear layer without bias in float16: C = A B^T, with the long sums along rows of both."""

import torch
import torch.nn as nn
import torch.nn.functional as functional

ROWS = 4096
INNER = 4096
COLUMNS = 4096
DTYPE = torch.float16


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """a: (ROWS, INNER), b: (COLUMNS, INNER), as a layer's weight. Returns (ROWS, COLUMNS)."""
        return functional.linear(a, b)


def get_inputs():
    return [torch.randn(ROWS, INNER).to(DTYPE), torch.randn(COLUMNS, INNER).to(DTYPE)]


def get_init_inputs():
    return []
