"""A small vision transformer: square patches, a class token, LAYERS blocks, logits of the classes.

An image is PATCHES * PATCHES patches of PATCH * PATCH pixels. Attention is over all patches and the
class token; the head reads that token and the mean of the patches. Features are
HEADS * HEAD_FEATURES.
"""

import math

import torch
import torch.nn as nn
import torch.nn.functional as functional

BATCH = 8
CHANNELS = 3
PATCHES = 6
PATCH = 8
HEADS = 4
HEAD_FEATURES = 32
HIDDEN = 256
LAYERS = 2
CLASSES = 100


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


class Attention(nn.Module):
    def __init__(self, heads: int, head_features: int):
        super().__init__()
        features = heads * head_features
        self.heads = heads
        # Without a bias: softmax would cancel that of the keys.
        self.queries_keys_values = make_linear(features, 3 * features, bias=False)
        self.combine = make_linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, features = x.shape
        split = self.queries_keys_values(x).view(batch, tokens, 3, self.heads, -1)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        scores = torch.matmul(query / math.sqrt(query.shape[-1]), key.transpose(-2, -1))
        mixed = torch.matmul(torch.softmax(scores, dim=-1), value).transpose(1, 2)
        return self.combine(mixed.reshape(batch, tokens, features))


class Block(nn.Module):
    def __init__(self, heads: int, head_features: int, hidden: int):
        super().__init__()
        features = heads * head_features
        self.attention_norm = make_norm(features)
        self.attention = Attention(heads, head_features)
        self.feed_forward_norm = make_norm(features)
        self.expand = make_linear(features, hidden)
        self.contract = make_linear(hidden, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.attention_norm(x))
        hidden = functional.gelu(self.expand(self.feed_forward_norm(x)))
        return x + self.contract(hidden)


class Model(nn.Module):
    def __init__(
        self,
        channels: int,
        patches: int,
        patch: int,
        heads: int,
        head_features: int,
        hidden: int,
        layers: int,
        classes: int,
    ):
        super().__init__()
        features = heads * head_features
        self.embed = nn.Conv2d(channels, features, patch, stride=patch)
        self.class_token = nn.Parameter(torch.randn(features))
        self.positions = nn.Parameter(0.5 * torch.randn(patches * patches + 1, features))
        self.blocks = nn.Sequential(*[Block(heads, head_features, hidden) for _ in range(layers)])
        self.norm = make_norm(features)
        self.head = make_linear(2 * features, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """images: (BATCH, CHANNELS, PATCHES * PATCH, PATCHES * PATCH). Returns (BATCH, CLASSES)."""
        tokens = self.embed(images).flatten(2).transpose(1, 2)
        first = self.class_token.expand(tokens.shape[0], 1, -1)
        tokens = self.norm(self.blocks(torch.cat([first, tokens], dim=1) + self.positions))
        return self.head(torch.cat([tokens[:, 0], tokens[:, 1:].mean(dim=1)], dim=-1))


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, PATCHES * PATCH, PATCHES * PATCH)]


def get_init_inputs():
    return [CHANNELS, PATCHES, PATCH, HEADS, HEAD_FEATURES, HIDDEN, LAYERS, CLASSES]
