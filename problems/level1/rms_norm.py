"""Root-mean-square normalisation: each row is divided by the root of its mean square.

Unlike in layer normalisation no mean is subtracted. A learned weight a feature follows.
"""

import torch
import torch.nn as nn

ROWS = 2048
FEATURES = 1024
EPSILON = 1e-6


class Model(nn.Module):
    def __init__(self, features: int, epsilon: float):
        super().__init__()
        # A trained layer's weights are not all ones.
        self.weight = nn.Parameter(torch.empty(features).normal_(mean=1.0, std=0.2))
        self.epsilon = epsilon

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (ROWS, FEATURES). Returns the same shape."""
        mean_square = x.square().mean(dim=-1, keepdim=True)
        return x * torch.rsqrt(mean_square + self.epsilon) * self.weight


def get_inputs():
    # Rows of different size, so that the normalisation has something to do.
    return [torch.randn(ROWS, FEATURES) * (0.5 + 2 * torch.rand(ROWS, 1))]


def get_init_inputs():
    return [FEATURES, EPSILON]
