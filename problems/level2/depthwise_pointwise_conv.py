"""A separable convolution: one filter a channel, hard swish, then a 1 x 1 mix of the channels.

Stride 1; zero padding keeps the height and the width.
"""

import torch
import torch.nn as nn
import torch.nn.functional as functional

BATCH = 8
CHANNELS_IN = 64
CHANNELS_OUT = 64
HEIGHT = 32
WIDTH = 32
KERNEL = 3


class Model(nn.Module):
    def __init__(self, channels_in: int, channels_out: int, kernel: int):
        super().__init__()
        self.depthwise = nn.Conv2d(
            channels_in, channels_in, kernel, padding=kernel // 2, groups=channels_in
        )
        self.pointwise = nn.Conv2d(channels_in, channels_out, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (BATCH, CHANNELS_IN, HEIGHT, WIDTH). Returns (BATCH, CHANNELS_OUT, HEIGHT, WIDTH)."""
        return self.pointwise(functional.hardswish(self.depthwise(x)))


def get_inputs():
    return [torch.randn(BATCH, CHANNELS_IN, HEIGHT, WIDTH)]


def get_init_inputs():
    return [CHANNELS_IN, CHANNELS_OUT, KERNEL]
