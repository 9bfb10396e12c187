"""Causal attention with rotary embeddings: query and key are rotated by angles of their position.

Feature i and feature i + HEAD_FEATURES / 2 form a plane; the model holds the cosine and the sine of
each position and plane. A position attends to itself and to those before it.
"""

import math

import torch
import torch.nn as nn

BATCH = 2
HEADS = 4
SEQUENCE = 192
HEAD_FEATURES = 64


class Model(nn.Module):
    def __init__(self, sequence: int, head_features: int):
        super().__init__()
        planes = head_features // 2
        frequencies = 10000.0 ** (-torch.arange(planes) / planes)
        angles = torch.arange(sequence).unsqueeze(1) * frequencies
        self.register_buffer("cosine", angles.cos())
        self.register_buffer("sine", angles.sin())

    def rotate(self, x: torch.Tensor) -> torch.Tensor:
        first, second = x.chunk(2, dim=-1)
        return torch.cat(
            [
                first * self.cosine - second * self.sine,
                second * self.cosine + first * self.sine,
            ],
            dim=-1,
        )

    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """Each argument: (BATCH, HEADS, SEQUENCE, HEAD_FEATURES). Returns the same shape."""
        length = query.shape[-2]
        later = torch.ones(length, length, dtype=torch.bool, device=query.device).triu(1)
        query = self.rotate(query) / math.sqrt(query.shape[-1])
        scores = torch.matmul(query, self.rotate(key).transpose(-2, -1))
        scores = scores.masked_fill(later, -math.inf)
        return torch.matmul(torch.softmax(scores, dim=-1), value)


def get_inputs():
    shape = (BATCH, HEADS, SEQUENCE, HEAD_FEATURES)
    return [torch.randn(shape), torch.randn(shape), torch.randn(shape)]


def get_init_inputs():
    return [SEQUENCE, HEAD_FEATURES]
