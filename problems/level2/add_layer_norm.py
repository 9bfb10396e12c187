"""Residual addition and layer normalisation: the sum and its normalised rows are both returned.

The sum goes on as the residual stream of a transformer, the normalised rows into its next layer.
"""

from typing import Tuple

import torch
import torch.nn as nn

ROWS = 1024
FEATURES = 1024


class Model(nn.Module):
    def __init__(self, features: int):
        super().__init__()
        self.norm = nn.LayerNorm(features)
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.2)
        nn.init.normal_(self.norm.bias, mean=0.0, std=0.2)

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        """x, residual: (ROWS, FEATURES). Returns normalised sum and sum, each that shape."""
        total = x + residual
        return self.norm(total), total


def get_inputs():
    return [torch.randn(ROWS, FEATURES), torch.randn(ROWS, FEATURES)]


def get_init_inputs():
    return [FEATURES]
