"""Sum of two vectors."""

import torch
import torch.nn as nn

COUNT = 2 ** 20


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """a, b: (COUNT). Returns (COUNT)."""
        return a + b


def get_inputs():
    return [torch.randn(COUNT), torch.randn(COUNT)]


def get_init_inputs():
    return []
