"""Transposed two-dimensional convolution with a bias: an image of twice the height and width.

Each input element adds a kernel of 4 x 4 weights to the output; neighbouring elements' kernels lie
two apart, so they overlap. One row or column is cut off at each border.
"""

import torch
import torch.nn as nn

BATCH = 2
CHANNELS_IN = 32
CHANNELS_OUT = 16
HEIGHT = 32
WIDTH = 32


class Model(nn.Module):
    def __init__(self, channels_in: int, channels_out: int):
        super().__init__()
        self.convolution = nn.ConvTranspose2d(channels_in, channels_out, 4, stride=2, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (BATCH, CHANNELS_IN, HEIGHT, WIDTH).

        Returns (BATCH, CHANNELS_OUT, 2 * HEIGHT, 2 * WIDTH).
        """
        return self.convolution(x)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS_IN, HEIGHT, WIDTH)]


def get_init_inputs():
    return [CHANNELS_IN, CHANNELS_OUT]
