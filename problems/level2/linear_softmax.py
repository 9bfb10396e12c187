"""A classifier's head: softmax over the classes of x W^T + b, row by row."""

import torch
import torch.nn as nn

ROWS = 512
FEATURES = 256
CLASSES = 512


class Model(nn.Module):
    def __init__(self, features: int, classes: int):
        super().__init__()
        self.linear = nn.Linear(features, classes)
        # Logits of deviation 2: rows that prefer some classes, as those of a trained classifier.
        nn.init.normal_(self.linear.weight, std=2.0 / features**0.5)
        nn.init.normal_(self.linear.bias, std=0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (ROWS, FEATURES). Returns (ROWS, CLASSES)."""
        return torch.softmax(self.linear(x), dim=-1)


def get_inputs():
    return [torch.randn(ROWS, FEATURES)]


def get_init_inputs():
    return [FEATURES, CLASSES]
