"""RMSNorm and the product that gives queries, keys and values, in bfloat16.

With one row of x, as in a step of decoding, it is a problem of memory alone, and of launches: the
norm has 8 KB of work. The sizes are those of Llama 3 8B (32 heads of queries, 8 of keys and of
values, of 128 each).
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 1
FEATURES = 4096
OUTPUTS = 6144
EPSILON = 1e-5
DTYPE = torch.bfloat16


class Model(nn.Module):
    def __init__(self, features: int, outputs: int, epsilon: float):
        super().__init__()
        # A trained layer's weights are not all ones.
        weight = torch.empty(features).normal_(mean=1.0, std=0.2)
        self.norm_weight = nn.Parameter(weight.to(DTYPE))
        self.qkv = nn.Linear(features, outputs, bias=False, dtype=DTYPE)
        self.epsilon = epsilon

    def norm(self, x: torch.Tensor) -> torch.Tensor:
        if hasattr(F, "rms_norm"):
            return F.rms_norm(x, self.norm_weight.shape, self.norm_weight, self.epsilon)
        # PyTorch before 2.4
        mean_square = x.square().mean(dim=-1, keepdim=True)
        return x * torch.rsqrt(mean_square + self.epsilon) * self.norm_weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (ROWS, FEATURES). Returns (ROWS, OUTPUTS)."""
        return self.qkv(self.norm(x))


def get_inputs():
    # Rows of different size, so that the normalisation has something to do.
    rows = torch.randn(ROWS, FEATURES) * (0.5 + 2 * torch.rand(ROWS, 1))
    return [rows.to(DTYPE)]


def get_init_inputs():
    return [FEATURES, OUTPUTS, EPSILON]
