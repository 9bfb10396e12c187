"""A mixer: layers that mix tokens, then features, without attention; then logits of the classes.

Tokens are mixed by a product along the sequence, features by one along the last dimension: the same
data is read in both directions. The head reads the mean over the tokens.
"""

import torch
import torch.nn as nn
import torch.nn.functional as functional

BATCH = 8
TOKENS = 64
FEATURES = 128
TOKEN_HIDDEN = 128
FEATURE_HIDDEN = 256
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


class FeedForward(nn.Module):
    def __init__(self, features: int, hidden: int, bias: bool):
        super().__init__()
        self.expand = make_linear(features, hidden)
        self.contract = make_linear(hidden, features, bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.contract(functional.gelu(self.expand(x)))


class MixerLayer(nn.Module):
    def __init__(self, tokens: int, features: int, token_hidden: int, feature_hidden: int):
        super().__init__()
        self.token_norm = make_norm(features)
        # Without a bias at its end: all features of a token would share it, and every norm that
        # follows takes away what they share.
        self.mix_tokens = FeedForward(tokens, token_hidden, bias=False)
        self.feature_norm = make_norm(features)
        self.mix_features = FeedForward(features, feature_hidden, bias=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.mix_tokens(self.token_norm(x).transpose(1, 2)).transpose(1, 2)
        return x + self.mix_features(self.feature_norm(x))


class Model(nn.Module):
    def __init__(
        self,
        tokens: int,
        features: int,
        token_hidden: int,
        feature_hidden: int,
        layers: int,
        classes: int,
    ):
        super().__init__()
        self.layers = nn.Sequential(
            *[MixerLayer(tokens, features, token_hidden, feature_hidden) for _ in range(layers)]
        )
        self.norm = make_norm(features)
        self.head = make_linear(features, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (BATCH, TOKENS, FEATURES). Returns (BATCH, CLASSES)."""
        return self.head(self.norm(self.layers(x)).mean(dim=1))


def get_inputs():
    return [torch.randn(BATCH, TOKENS, FEATURES)]


def get_init_inputs():
    return [TOKENS, FEATURES, TOKEN_HIDDEN, FEATURE_HIDDEN, LAYERS, CLASSES]
