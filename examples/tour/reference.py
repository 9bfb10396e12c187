"""Softmax of attention scores, scaled by a learned factor a head, over the keys that a mask keeps.

Keys that are not kept get exactly zero. The heads share the mask; every query keeps some key.
"""

import math

import torch
import torch.nn as nn

BATCH = 2
HEADS = 4
QUERIES = 256
KEYS = 256


class Model(nn.Module):
    def __init__(self, heads: int):
        super().__init__()
        self.scale = nn.Parameter(0.5 + torch.rand(heads, 1, 1))

    def forward(self, scores: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
        """scores: (BATCH, HEADS, QUERIES, KEYS), keep: (BATCH, 1, QUERIES, KEYS), bool.

        Returns (BATCH, HEADS, QUERIES, KEYS).
        """
        return torch.softmax((scores * self.scale).masked_fill(~keep, -math.inf), dim=-1)


def get_inputs():
    keep = torch.rand(BATCH, 1, QUERIES, KEYS) < 0.7
    keep.scatter_(-1, torch.randint(KEYS, (BATCH, 1, QUERIES, 1)), True)
    return [torch.randn(BATCH, HEADS, QUERIES, KEYS), keep]


def get_init_inputs():
    return [HEADS]
