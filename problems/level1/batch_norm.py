"""Batch normalisation in inference: every channel by the mean and variance that training left.

(x - mean) / sqrt(variance + epsilon) * weight + bias, each of the four one number a channel.
"""

import torch
import torch.nn as nn
import torch.nn.functional as functional

BATCH = 32
CHANNELS = 32
HEIGHT = 64
WIDTH = 64
EPSILON = 1e-5


class Model(nn.Module):
    def __init__(self, channels: int, epsilon: float):
        super().__init__()
        # A trained layer's statistics, weight and bias are not zeros and ones.
        self.register_buffer("mean", torch.randn(channels))
        self.register_buffer("variance", 0.5 + 2 * torch.rand(channels))
        self.weight = nn.Parameter(torch.empty(channels).normal_(mean=1.0, std=0.2))
        self.bias = nn.Parameter(torch.empty(channels).normal_(mean=0.0, std=0.2))
        self.epsilon = epsilon

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (BATCH, CHANNELS, HEIGHT, WIDTH). Returns the same shape."""
        return functional.batch_norm(
            x, self.mean, self.variance, self.weight, self.bias, training=False, eps=self.epsilon
        )


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs():
    return [CHANNELS, EPSILON]
