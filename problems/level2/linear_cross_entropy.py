"""The cross-entropy loss of each row under a linear classifier: log-sum-exp minus one logit.

The logits are far larger than everything else and need never be stored.
"""

import torch
import torch.nn as nn
import torch.nn.functional as functional

ROWS = 256
FEATURES = 256
CLASSES = 1024


class Model(nn.Module):
    def __init__(self, features: int, classes: int):
        super().__init__()
        self.linear = nn.Linear(features, classes)
        nn.init.normal_(self.linear.weight, std=2.0 / features**0.5)
        nn.init.normal_(self.linear.bias, std=0.5)

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """x: (ROWS, FEATURES), labels: (ROWS), int64, below CLASSES. Returns (ROWS)."""
        return functional.cross_entropy(self.linear(x), labels, reduction="none")


def get_inputs():
    return [torch.randn(ROWS, FEATURES), torch.randint(CLASSES, (ROWS,))]


def get_init_inputs():
    return [FEATURES, CLASSES]
