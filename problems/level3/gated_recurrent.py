"""Two layers of gated recurrent units over a sequence, then a linear layer at every position.

The states before the first position are given. The last states of both layers are returned, too.
"""

from typing import Tuple

import torch
import torch.nn as nn

BATCH = 4
SEQUENCE = 48
FEATURES = 64
HIDDEN = 128
FEATURES_OUT = 64


class Model(nn.Module):
    def __init__(self, features: int, hidden: int, features_out: int):
        super().__init__()
        self.recurrent = nn.GRU(features, hidden, num_layers=2, batch_first=True)
        self.linear = nn.Linear(hidden, features_out)

    def forward(self, x: torch.Tensor, states: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        """x: (BATCH, SEQUENCE, FEATURES), states: (2, BATCH, HIDDEN).

        Returns (BATCH, SEQUENCE, FEATURES_OUT) and the last states, (2, BATCH, HIDDEN).
        """
        results, last = self.recurrent(x, states)
        return self.linear(results), last


def get_inputs():
    return [torch.randn(BATCH, SEQUENCE, FEATURES), torch.tanh(torch.randn(2, BATCH, HIDDEN))]


def get_init_inputs():
    return [FEATURES, HIDDEN, FEATURES_OUT]
