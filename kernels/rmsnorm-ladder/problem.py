"""RMSNorm in bfloat16: each row is divided by the root of its mean square, and weighted."""

import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 4096
COLUMNS = 8192
EPSILON = 1e-6


class Model(nn.Module):
    def __init__(self, columns: int, epsilon: float):
        super().__init__()
        # A trained layer's weights are not all ones.
        weight = torch.empty(columns).normal_(mean=1.0, std=0.2)
        self.weight = nn.Parameter(weight.to(torch.bfloat16))
        self.epsilon = epsilon

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (ROWS, COLUMNS). Returns the same shape."""
        if hasattr(F, "rms_norm"):
            return F.rms_norm(x, self.weight.shape, self.weight, self.epsilon)
        # PyTorch before 2.4
        mean_square = x.square().mean(dim=-1, keepdim=True)
        return x * torch.rsqrt(mean_square + self.epsilon) * self.weight


def get_inputs():
    # Rows of different size, so that the normalisation has something to do.
    rows = torch.randn(ROWS, COLUMNS) * (0.5 + 2 * torch.rand(ROWS, 1))
    return [rows.to(torch.bfloat16)]


def get_init_inputs():
    return [COLUMNS, EPSILON]
