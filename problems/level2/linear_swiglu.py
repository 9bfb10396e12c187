"""The gated half of a feed-forward layer: SiLU(x G^T) * (x U^T).

Two products share the operand x; the gate is applied element by element to the second one.
"""

import torch
import torch.nn as nn
import torch.nn.functional as functional

ROWS = 256
FEATURES = 256
HIDDEN = 512


class Model(nn.Module):
    def __init__(self, features: int, hidden: int):
        super().__init__()
        self.gate = nn.Linear(features, hidden, bias=False)
        self.up = nn.Linear(features, hidden, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (ROWS, FEATURES). Returns (ROWS, HIDDEN)."""
        return functional.silu(self.gate(x)) * self.up(x)


def get_inputs():
    return [torch.randn(ROWS, FEATURES)]


def get_init_inputs():
    return [FEATURES, HIDDEN]
