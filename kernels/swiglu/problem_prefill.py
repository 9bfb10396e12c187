"""The gated half of a feed-forward layer in bfloat16 for many rows: SiLU(x G^T) * (x U^T).

With thousands of rows of x, as when a prompt is read, it is a problem of products of matrices. The
sizes are those of Llama 3 8B. Numbers of features and of hidden elements are multiples of 8.
"""

import torch
import torch.nn as nn
import torch.nn.functional as functional

ROWS = 4096
FEATURE_CHUNKS = 512  # of 8 features
HIDDEN_CHUNKS = 1792
DTYPE = torch.bfloat16


class Model(nn.Module):
    def __init__(self, features: int, hidden: int):
        super().__init__()
        self.gate = nn.Linear(features, hidden, bias=False, dtype=DTYPE)
        self.up = nn.Linear(features, hidden, bias=False, dtype=DTYPE)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (ROWS, features). Returns (ROWS, hidden)."""
        return functional.silu(self.gate(x)) * self.up(x)


def get_inputs():
    return [torch.randn(ROWS, 8 * FEATURE_CHUNKS).to(DTYPE)]


def get_init_inputs():
    return [8 * FEATURE_CHUNKS, 8 * HIDDEN_CHUNKS]
