"""Sum over the middle dimension of a batch of matrices: every column of each matrix is added up."""

import torch
import torch.nn as nn

BATCH = 16
ROWS = 512
COLUMNS = 512


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (BATCH, ROWS, COLUMNS). Returns (BATCH, COLUMNS)."""
        return torch.sum(x, dim=1)


def get_inputs():
    return [torch.randn(BATCH, ROWS, COLUMNS)]


def get_init_inputs():
    return []
