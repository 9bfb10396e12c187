"""Convolution, batch normalisation by stored statistics, SiLU.

Stride 1; zero padding keeps the height and the width. The statistics do not depend on the batch.
"""

import torch
import torch.nn as nn
import torch.nn.functional as functional

BATCH = 8
CHANNELS_IN = 32
CHANNELS_OUT = 64
HEIGHT = 32
WIDTH = 32
KERNEL = 3


class Model(nn.Module):
    def __init__(self, channels_in: int, channels_out: int, kernel: int):
        super().__init__()
        self.convolution = nn.Conv2d(
            channels_in, channels_out, kernel, padding=kernel // 2, bias=False
        )
        self.norm_weight = nn.Parameter(1.0 + 0.2 * torch.randn(channels_out))
        self.norm_bias = nn.Parameter(0.2 * torch.randn(channels_out))
        self.register_buffer("norm_mean", 0.3 * torch.randn(channels_out))
        self.register_buffer("norm_variance", 0.5 + torch.rand(channels_out))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (BATCH, CHANNELS_IN, HEIGHT, WIDTH). Returns (BATCH, CHANNELS_OUT, HEIGHT, WIDTH)."""
        normalised = functional.batch_norm(
            self.convolution(x),
            self.norm_mean,
            self.norm_variance,
            self.norm_weight,
            self.norm_bias,
        )
        return functional.silu(normalised)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS_IN, HEIGHT, WIDTH)]


def get_init_inputs():
    return [CHANNELS_IN, CHANNELS_OUT, KERNEL]
