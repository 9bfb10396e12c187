"""Elements of each row at given places: out[i][j] = x[i][indices[i][j]].

Every row has indices of its own, in no order; an index may occur more than once.
"""

import torch
import torch.nn as nn

ROWS = 1024
COLUMNS = 4096
PICKS = 1024


class Model(nn.Module):
    def forward(self, x: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
        """x: (ROWS, COLUMNS), indices: (ROWS, PICKS), int64, from 0 to COLUMNS - 1.

        Returns (ROWS, PICKS).
        """
        return torch.gather(x, 1, indices)


def get_inputs():
    return [torch.randn(ROWS, COLUMNS), torch.randint(COLUMNS, (ROWS, PICKS))]


def get_init_inputs():
    return []
