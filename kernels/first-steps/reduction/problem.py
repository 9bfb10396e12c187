"""Sum of all elements of a vector.

Values are between 0 and 1: a sum of both signs may come out near 0, with no digits to be judged by.
"""

import torch
import torch.nn as nn

COUNT = 2 ** 20


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (COUNT). Returns one number, of no dimensions."""
        return torch.sum(x)


def get_inputs():
    return [torch.rand(COUNT)]


def get_init_inputs():
    return []
