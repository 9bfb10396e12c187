"""A residual block of an image classifier: two normalised convolutions, a skip and ReLU.

relu(x + norm(conv(relu(norm(conv(x)))))); normalisation is by stored statistics, so that it could
be folded into the convolutions. Stride 1; zero padding keeps the height and the width.
"""

import torch
import torch.nn as nn
import torch.nn.functional as functional

BATCH = 4
CHANNELS = 64
HEIGHT = 32
WIDTH = 32
KERNEL = 3


class StoredNorm(nn.Module):
    """Batch normalisation that never learns new statistics."""

    def __init__(self, channels: int):
        super().__init__()
        self.weight = nn.Parameter(1.0 + 0.2 * torch.randn(channels))
        # Above zero on average, so that ReLU leaves more than half of the values.
        self.bias = nn.Parameter(0.4 + 0.2 * torch.randn(channels))
        self.register_buffer("mean", 0.3 * torch.randn(channels))
        self.register_buffer("variance", 0.5 + torch.rand(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.batch_norm(x, self.mean, self.variance, self.weight, self.bias)


class Model(nn.Module):
    def __init__(self, channels: int, kernel: int):
        super().__init__()
        padding = kernel // 2
        self.first = nn.Conv2d(channels, channels, kernel, padding=padding, bias=False)
        self.first_norm = StoredNorm(channels)
        self.second = nn.Conv2d(channels, channels, kernel, padding=padding, bias=False)
        self.second_norm = StoredNorm(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (BATCH, CHANNELS, HEIGHT, WIDTH). Returns the same shape."""
        inner = torch.relu(self.first_norm(self.first(x)))
        return torch.relu(x + self.second_norm(self.second(inner)))


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs():
    return [CHANNELS, KERNEL]
