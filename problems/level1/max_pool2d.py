"""Largest element of each 3 x 3 window of an image, two rows and two columns from window to window.

Windows reach one element over the borders; what lies outside never counts. A NaN in a window makes
its maximum NaN.
"""

import torch
import torch.nn as nn
import torch.nn.functional as functional

BATCH = 4
CHANNELS = 32
HEIGHT = 64
WIDTH = 64


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (BATCH, CHANNELS, HEIGHT, WIDTH).

        Returns (BATCH, CHANNELS, (HEIGHT + 1) // 2, (WIDTH + 1) // 2).
        """
        return functional.max_pool2d(x, 3, stride=2, padding=1)


def get_inputs():
    # Channels of different means: some are negative throughout, so zeros at the border show.
    mean = 3 * torch.randn(BATCH, CHANNELS, 1, 1)
    return [mean + torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs():
    return []
