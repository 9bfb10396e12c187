"""Group normalisation: each image's channels are brought to mean 0 and variance 1 group by group.

A group's statistics go over all of its channels and pixels; a learned weight and bias a channel
follow.
"""

import torch
import torch.nn as nn

BATCH = 16
GROUPS = 8
GROUP_CHANNELS = 8
HEIGHT = 56
WIDTH = 56


class Model(nn.Module):
    def __init__(self, groups: int, group_channels: int):
        super().__init__()
        self.norm = nn.GroupNorm(groups, groups * group_channels)
        # A trained layer's weight and bias are not ones and zeros.
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.2)
        nn.init.normal_(self.norm.bias, mean=0.0, std=0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (BATCH, GROUPS * GROUP_CHANNELS, HEIGHT, WIDTH). Returns the same shape."""
        return self.norm(x)


def get_inputs():
    channels = GROUPS * GROUP_CHANNELS
    # Channels of different mean and size, so that the normalisation has something to do.
    mean = torch.randn(BATCH, channels, 1, 1)
    deviation = 0.5 + 2 * torch.rand(BATCH, channels, 1, 1)
    return [mean + deviation * torch.randn(BATCH, channels, HEIGHT, WIDTH)]


def get_init_inputs():
    return [GROUPS, GROUP_CHANNELS]
