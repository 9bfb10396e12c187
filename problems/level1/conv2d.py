"""Two-dimensional convolution of a batch of images, with a bias.

Stride 1; zero padding keeps the height and the width.
"""

import torch
import torch.nn as nn

BATCH = 2
CHANNELS_IN = 32
CHANNELS_OUT = 32
HEIGHT = 64
WIDTH = 64
KERNEL = 3


class Model(nn.Module):
    def __init__(self, channels_in: int, channels_out: int, kernel: int):
        super().__init__()
        self.convolution = nn.Conv2d(channels_in, channels_out, kernel, padding=kernel // 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (BATCH, CHANNELS_IN, HEIGHT, WIDTH). Returns (BATCH, CHANNELS_OUT, HEIGHT, WIDTH)."""
        return self.convolution(x)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS_IN, HEIGHT, WIDTH)]


def get_init_inputs():
    return [CHANNELS_IN, CHANNELS_OUT, KERNEL]
