"""Three-dimensional convolution of a batch of volumes, with a bias.

Stride 1, no padding: each dimension of the output is KERNEL - 1 shorter than the input's.
"""

import torch
import torch.nn as nn

BATCH = 2
CHANNELS_IN = 8
CHANNELS_OUT = 16
DEPTH = 16
HEIGHT = 32
WIDTH = 32
KERNEL = 3


class Model(nn.Module):
    def __init__(self, channels_in: int, channels_out: int, kernel: int):
        super().__init__()
        self.convolution = nn.Conv3d(channels_in, channels_out, kernel)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (BATCH, CHANNELS_IN, DEPTH, HEIGHT, WIDTH).

        Returns (BATCH, CHANNELS_OUT, DEPTH - KERNEL + 1, HEIGHT - KERNEL + 1, WIDTH - KERNEL + 1).
        """
        return self.convolution(x)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS_IN, DEPTH, HEIGHT, WIDTH)]


def get_init_inputs():
    return [CHANNELS_IN, CHANNELS_OUT, KERNEL]
