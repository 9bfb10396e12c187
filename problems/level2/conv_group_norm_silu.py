"""Convolution, group normalisation by each image's own statistics, SiLU.

The GROUPS * GROUP_CHANNELS channels of the convolution are normalised group by group, over the
whole image. Stride 1; zero padding keeps the height and the width.
"""

import torch
import torch.nn as nn
import torch.nn.functional as functional

BATCH = 8
CHANNELS_IN = 32
GROUPS = 8
GROUP_CHANNELS = 8
HEIGHT = 32
WIDTH = 32
KERNEL = 3


class Model(nn.Module):
    def __init__(self, channels_in: int, groups: int, group_channels: int, kernel: int):
        super().__init__()
        channels_out = groups * group_channels
        self.convolution = nn.Conv2d(channels_in, channels_out, kernel, padding=kernel // 2)
        self.norm = nn.GroupNorm(groups, channels_out)
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.2)
        nn.init.normal_(self.norm.bias, mean=0.0, std=0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (BATCH, CHANNELS_IN, HEIGHT, WIDTH).

        Returns (BATCH, GROUPS * GROUP_CHANNELS, HEIGHT, WIDTH).
        """
        return functional.silu(self.norm(self.convolution(x)))


def get_inputs():
    # Images of different brightness and contrast, so that the normalisation matters.
    shape = (BATCH, 1, 1, 1)
    image = torch.randn(BATCH, CHANNELS_IN, HEIGHT, WIDTH)
    return [image * (0.5 + torch.rand(shape)) + torch.randn(shape)]


def get_init_inputs():
    return [CHANNELS_IN, GROUPS, GROUP_CHANNELS, KERNEL]
