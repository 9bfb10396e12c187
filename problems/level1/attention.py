"""Scaled dot-product attention of every head over the whole sequence, without a mask.

softmax(Q K^T / sqrt(d)) V, in PyTorch's plain operators.
"""

import math

import torch
import torch.nn as nn

BATCH = 2
HEADS = 4
SEQUENCE = 256
HEAD_FEATURES = 64


class Model(nn.Module):
    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """Each argument: (BATCH, HEADS, SEQUENCE, HEAD_FEATURES). Returns the same shape."""
        scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(query.shape[-1])
        return torch.matmul(torch.softmax(scores, dim=-1), value)


def get_inputs():
    shape = (BATCH, HEADS, SEQUENCE, HEAD_FEATURES)
    return [torch.randn(shape), torch.randn(shape), torch.randn(shape)]


def get_init_inputs():
    return []
