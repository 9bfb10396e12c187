"""Scaled dot-product attention in which each position sees itself and the positions before it.

softmax(Q K^T / sqrt(d) with -inf above the diagonal) V, in PyTorch's plain operators. Scores above
the diagonal need never be computed.
"""

import math

import torch
import torch.nn as nn

BATCH = 1
HEADS = 4
SEQUENCE = 256
HEAD_FEATURES = 64


class Model(nn.Module):
    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """Each argument: (BATCH, HEADS, SEQUENCE, HEAD_FEATURES). Returns the same shape."""
        sequence = query.shape[-2]
        later = torch.ones(sequence, sequence, dtype=torch.bool, device=query.device).triu(1)
        scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(query.shape[-1])
        weights = torch.softmax(scores.masked_fill(later, -math.inf), dim=-1)
        return torch.matmul(weights, value)


def get_inputs():
    shape = (BATCH, HEADS, SEQUENCE, HEAD_FEATURES)
    return [torch.randn(shape), torch.randn(shape), torch.randn(shape)]


def get_init_inputs():
    return []
