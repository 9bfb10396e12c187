"""Dilated one-dimensional convolution of a batch of signals, with a bias.

The taps of the kernel lie DILATION elements apart; stride 1; zero padding keeps the length.
"""

import torch
import torch.nn as nn

BATCH = 4
CHANNELS_IN = 32
CHANNELS_OUT = 32
LENGTH = 4096
KERNEL = 5
DILATION = 3


class Model(nn.Module):
    def __init__(self, channels_in: int, channels_out: int, kernel: int, dilation: int):
        super().__init__()
        self.convolution = nn.Conv1d(
            channels_in,
            channels_out,
            kernel,
            padding=dilation * (kernel // 2),
            dilation=dilation,
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (BATCH, CHANNELS_IN, LENGTH). Returns (BATCH, CHANNELS_OUT, LENGTH)."""
        return self.convolution(x)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS_IN, LENGTH)]


def get_init_inputs():
    return [CHANNELS_IN, CHANNELS_OUT, KERNEL, DILATION]
