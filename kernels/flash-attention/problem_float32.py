"""Scaled dot-product attention in float32, for processors.

softmax(Q K^T / sqrt(HEAD_DIM)) V for each head; with CAUSAL = 1 a query sees no key after it.
`causal` is a tensor of 1 + CAUSAL elements: its length says which of the two is asked for.
"""

import math

import torch
import torch.nn as nn
import torch.nn.functional as functional

BATCH = 1
HEADS = 4
LENGTH = 1024
HEAD_DIM = 64
CAUSAL = 0


class Model(nn.Module):
    def forward(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, causal: torch.Tensor
    ) -> torch.Tensor:
        """The first three and the result: (BATCH, HEADS, LENGTH, HEAD_DIM)."""
        is_causal = causal.shape[0] == 2
        if hasattr(functional, "scaled_dot_product_attention"):
            return functional.scaled_dot_product_attention(query, key, value, is_causal=is_causal)
        scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(query.shape[-1])
        if is_causal:
            later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=query.device).triu(1)
            scores = scores.masked_fill(later, -math.inf)
        return torch.matmul(torch.softmax(scores, dim=-1), value)


def get_inputs():
    shape = (BATCH, HEADS, LENGTH, HEAD_DIM)
    tensors = [torch.randn(shape) for _ in range(3)]
    return [*tensors, torch.zeros(1 + CAUSAL, dtype=torch.bool)]


def get_init_inputs():
    return []
