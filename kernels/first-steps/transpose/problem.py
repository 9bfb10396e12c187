"""Transpose of a matrix, written out."""

import torch
import torch.nn as nn

ROWS = 1024
COLUMNS = 1024


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (ROWS, COLUMNS). Returns (COLUMNS, ROWS)."""
        return x.t().contiguous()


def get_inputs():
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return []
