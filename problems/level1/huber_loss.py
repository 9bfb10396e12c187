"""Huber loss of each row: squared for small differences, linear for large ones, then the mean.

d^2 / 2 where |d| is at most DELTA, DELTA * (|d| - DELTA / 2) elsewhere, d = prediction - target.
"""

import torch
import torch.nn as nn
import torch.nn.functional as functional

ROWS = 1024
COLUMNS = 2048
DELTA = 0.75


class Model(nn.Module):
    def __init__(self, delta: float):
        super().__init__()
        self.delta = delta

    def forward(self, prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """prediction, target: (ROWS, COLUMNS). Returns (ROWS)."""
        loss = functional.huber_loss(prediction, target, reduction="none", delta=self.delta)
        return loss.mean(dim=-1)


def get_inputs():
    # Rows of different size, so that their losses differ and both branches are taken often.
    prediction = torch.randn(ROWS, COLUMNS) * (0.25 + 2 * torch.rand(ROWS, 1))
    return [prediction, 0.5 * torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return [DELTA]
