"""Layer normalisation: each row is brought to mean 0 and variance 1.

A learned weight and bias a feature follow.
"""

import torch
import torch.nn as nn

ROWS = 2048
FEATURES = 1024


class Model(nn.Module):
    def __init__(self, features: int):
        super().__init__()
        self.norm = nn.LayerNorm(features)
        # A trained layer's weight and bias are not ones and zeros.
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.2)
        nn.init.normal_(self.norm.bias, mean=0.0, std=0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (ROWS, FEATURES). Returns the same shape."""
        return self.norm(x)


def get_inputs():
    return [torch.randn(ROWS, FEATURES)]


def get_init_inputs():
    return [FEATURES]
