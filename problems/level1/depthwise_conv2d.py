"""Depthwise two-dimensional convolution with a bias: each channel has a kernel of its own.

Nothing is added up across channels. Stride 1; zero padding keeps the height and the width.
"""

import torch
import torch.nn as nn

BATCH = 4
CHANNELS = 64
HEIGHT = 64
WIDTH = 64
KERNEL = 5


class Model(nn.Module):
    def __init__(self, channels: int, kernel: int):
        super().__init__()
        self.convolution = nn.Conv2d(
            channels, channels, kernel, padding=kernel // 2, groups=channels
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (BATCH, CHANNELS, HEIGHT, WIDTH). Returns the same shape."""
        return self.convolution(x)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs():
    return [CHANNELS, KERNEL]
