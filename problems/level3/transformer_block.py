"""One block of a decoder: causal attention of several heads, then a GELU layer, both pre-norm.

x + attention(norm(x)), then that plus feed_forward(norm(that)). Features are HEADS * HEAD_FEATURES.
"""

import math

import torch
import torch.nn as nn
import torch.nn.functional as functional

BATCH = 2
SEQUENCE = 128
HEADS = 4
HEAD_FEATURES = 32
HIDDEN = 512


def make_linear(features_in: int, features_out: int, bias: bool = True) -> nn.Linear:
    linear = nn.Linear(features_in, features_out, bias=bias)
    nn.init.normal_(linear.weight, std=features_in**-0.5)
    if bias:
        nn.init.normal_(linear.bias, std=0.2)
    return linear


def make_norm(features: int) -> nn.LayerNorm:
    norm = nn.LayerNorm(features)
    nn.init.normal_(norm.weight, mean=1.0, std=0.2)
    nn.init.normal_(norm.bias, std=0.2)
    return norm


class CausalAttention(nn.Module):
    def __init__(self, heads: int, head_features: int):
        super().__init__()
        features = heads * head_features
        self.heads = heads
        # Without a bias: softmax would cancel that of the keys.
        self.queries_keys_values = make_linear(features, 3 * features, bias=False)
        self.combine = make_linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, sequence, features = x.shape
        split = self.queries_keys_values(x).view(batch, sequence, 3, self.heads, -1)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        scores = torch.matmul(query / math.sqrt(query.shape[-1]), key.transpose(-2, -1))
        later = torch.ones(sequence, sequence, dtype=torch.bool, device=x.device).triu(1)
        weights = torch.softmax(scores.masked_fill(later, -math.inf), dim=-1)
        mixed = torch.matmul(weights, value).transpose(1, 2)
        return self.combine(mixed.reshape(batch, sequence, features))


class Model(nn.Module):
    def __init__(self, heads: int, head_features: int, hidden: int):
        super().__init__()
        features = heads * head_features
        self.attention_norm = make_norm(features)
        self.attention = CausalAttention(heads, head_features)
        self.feed_forward_norm = make_norm(features)
        self.expand = make_linear(features, hidden)
        self.contract = make_linear(hidden, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (BATCH, SEQUENCE, HEADS * HEAD_FEATURES). Returns the same shape."""
        x = x + self.attention(self.attention_norm(x))
        hidden = functional.gelu(self.expand(self.feed_forward_norm(x)))
        return x + self.contract(hidden)


def get_inputs():
    return [torch.randn(BATCH, SEQUENCE, HEADS * HEAD_FEATURES)]


def get_init_inputs():
    return [HEADS, HEAD_FEATURES, HIDDEN]
