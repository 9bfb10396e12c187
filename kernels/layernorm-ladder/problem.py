"""LayerNorm over everything but the batch: each image is brought to mean 0 and variance 1.

The shapes of KernelBench's level 1, problem 40. A row is 4.2 million values: it fits no block, but
it fits the chip. A weight and a bias an element follow; they start as ones and zeros, and the judge
draws others.
"""

import torch
import torch.nn as nn

BATCH = 16
FEATURES = 64
DIM1 = 256
DIM2 = 256


class Model(nn.Module):
    def __init__(self, normalized_shape: tuple):
        super().__init__()
        self.norm = nn.LayerNorm(normalized_shape=normalized_shape)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (BATCH, FEATURES, DIM1, DIM2). Returns the same shape."""
        return self.norm(x)


def get_inputs():
    return [torch.randn(BATCH, FEATURES, DIM1, DIM2)]


def get_init_inputs():
    return [(FEATURES, DIM1, DIM2)]
