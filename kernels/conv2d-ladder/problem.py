"""The first convolution of AlexNet: 96 filters of 11 x 11 over three channels, every fourth pixel.

The shape of KernelBench's level 1, problem 50, at a batch of 100.
"""

import torch
import torch.nn as nn

BATCH = 100
CHANNELS_IN = 3
CHANNELS_OUT = 96
HEIGHT = 224
WIDTH = 224
KERNEL = 11


class Model(nn.Module):
    def __init__(self, channels_in: int, channels_out: int, kernel: int):
        super().__init__()
        self.convolution = nn.Conv2d(channels_in, channels_out, kernel, stride=4, padding=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (BATCH, CHANNELS_IN, HEIGHT, WIDTH).

        Returns (BATCH, CHANNELS_OUT, (HEIGHT + 4 - KERNEL) // 4 + 1, the same of WIDTH).
        """
        return self.convolution(x)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS_IN, HEIGHT, WIDTH)]


def get_init_inputs():
    return [CHANNELS_IN, CHANNELS_OUT, KERNEL]
