"""Normalisation by the root mean square of each row, with a learned weight, then a linear layer.

The factor a row can be applied after the product, so that x is read once.
"""

import torch
import torch.nn as nn

ROWS = 512
FEATURES_IN = 256
FEATURES_OUT = 512
EPSILON = 1e-5


class Model(nn.Module):
    def __init__(self, features_in: int, features_out: int, epsilon: float):
        super().__init__()
        self.norm_weight = nn.Parameter(1.0 + 0.2 * torch.randn(features_in))
        self.linear = nn.Linear(features_in, features_out)
        self.epsilon = epsilon

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (ROWS, FEATURES_IN). Returns (ROWS, FEATURES_OUT)."""
        mean_square = x.pow(2).mean(dim=-1, keepdim=True)
        return self.linear(x * torch.rsqrt(mean_square + self.epsilon) * self.norm_weight)


def get_inputs():
    # Rows of different scales, so that the normalisation matters.
    return [torch.randn(ROWS, FEATURES_IN) * (0.25 + 2.0 * torch.rand(ROWS, 1))]


def get_init_inputs():
    return [FEATURES_IN, FEATURES_OUT, EPSILON]
