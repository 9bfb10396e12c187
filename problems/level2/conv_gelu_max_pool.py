"""Convolution with a bias, GELU, then the largest value of each POOL x POOL window.

Zero padding before the convolution, none before the pooling: a rest at the right and at the bottom
that fills no window is left out. GELU falls before it rises, so pooling first is not the same.
"""

import torch
import torch.nn as nn
import torch.nn.functional as functional

BATCH = 8
CHANNELS_IN = 32
CHANNELS_OUT = 32
HEIGHT = 32
WIDTH = 32
KERNEL = 3
POOL = 2


class Model(nn.Module):
    def __init__(self, channels_in: int, channels_out: int, kernel: int, pool: int):
        super().__init__()
        self.convolution = nn.Conv2d(channels_in, channels_out, kernel, padding=kernel // 2)
        # Some channels mostly below zero, where the order of GELU and pooling shows.
        nn.init.normal_(self.convolution.bias, mean=-0.5, std=0.5)
        self.pool = pool

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (BATCH, CHANNELS_IN, HEIGHT, WIDTH).

        Returns (BATCH, CHANNELS_OUT, HEIGHT // POOL, WIDTH // POOL).
        """
        return functional.max_pool2d(functional.gelu(self.convolution(x)), self.pool)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS_IN, HEIGHT, WIDTH)]


def get_init_inputs():
    return [CHANNELS_IN, CHANNELS_OUT, KERNEL, POOL]
