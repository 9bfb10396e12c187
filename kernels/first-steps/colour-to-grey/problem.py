"""A colour image to grey: the weighted sum of red, green and blue of every pixel."""

import torch
import torch.nn as nn

HEIGHT = 512
WIDTH = 512


class Model(nn.Module):
    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """image: (HEIGHT, WIDTH, 3). Returns (HEIGHT, WIDTH)."""
        return 0.299 * image[..., 0] + 0.587 * image[..., 1] + 0.114 * image[..., 2]


def get_inputs():
    return [torch.randn(HEIGHT, WIDTH, 3)]


def get_init_inputs():
    return []
