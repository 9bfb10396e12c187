"""Product of a lower triangular matrix and a dense one: C = A B.

A is zero above its diagonal on every call, so half of the multiplications can be left out.
"""

import torch
import torch.nn as nn

ROWS = 512
COLUMNS = 384


class Model(nn.Module):
    def __init__(self, rows: int, columns: int):
        super().__init__()
        # A parameter is always finite. A NaN or infinity in an input B would spread to the rows
        # above it through 0 * NaN, and a kernel that skips the zeros could not know.
        self.b = nn.Parameter(torch.randn(rows, columns))

    def forward(self, a: torch.Tensor) -> torch.Tensor:
        """a: (ROWS, ROWS), lower triangular. Returns (ROWS, COLUMNS)."""
        return torch.matmul(a, self.b)


def get_inputs():
    return [torch.tril(torch.randn(ROWS, ROWS))]


def get_init_inputs():
    return [ROWS, COLUMNS]
