"""The first layers of AlexNet: a convolution with a bias, ReLU, the largest of overlapping windows.

The convolution is that of KernelBench's level 1, problem 50, at a batch of 100; windows are 3 x 3,
two pixels apart, and a rest at the right and at the bottom that fills no window is left out.
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
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(kernel_size=3, stride=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (BATCH, CHANNELS_IN, HEIGHT, WIDTH).

        With h = (HEIGHT + 4 - KERNEL) // 4 + 1 rows after the convolution, and w columns likewise,
        returns (BATCH, CHANNELS_OUT, (h - 3) // 2 + 1, (w - 3) // 2 + 1).
        """
        return self.pool(self.relu(self.convolution(x)))


def get_inputs():
    return [torch.randn(BATCH, CHANNELS_IN, HEIGHT, WIDTH)]


def get_init_inputs():
    return [CHANNELS_IN, CHANNELS_OUT, KERNEL]
