"""The gated half of a feed-forward layer in bfloat16: SiLU(x G^T) * (x U^T).

With one row of x, as in a step of decoding, every weight is read for one multiply-add: it is a
problem of memory alone. The sizes are those of Llama 3 8B.
"""

import torch
import torch.nn as nn
import torch.nn.functional as functional

ROWS = 1
FEATURES = 4096
HIDDEN = 14336
DTYPE = torch.bfloat16


class Model(nn.Module):
    def __init__(self, features: int, hidden: int):
        super().__init__()
        self.gate = nn.Linear(features, hidden, bias=False, dtype=DTYPE)
        self.up = nn.Linear(features, hidden, bias=False, dtype=DTYPE)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (ROWS, FEATURES). Returns (ROWS, HIDDEN)."""
        return functional.silu(self.gate(x)) * self.up(x)


def get_inputs():
    return [torch.randn(ROWS, FEATURES).to(DTYPE)]


def get_init_inputs():
    return [FEATURES, HIDDEN]
