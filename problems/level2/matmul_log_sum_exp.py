"""The logarithm of the summed exponentials of each row of a product: log(sum(exp(A B))).

The product is far larger than what comes in and goes out, and need never be stored.
"""

import torch
import torch.nn as nn

ROWS = 1024
INNER = 64
COLUMNS = 512


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """a: (ROWS, INNER), b: (INNER, COLUMNS). Returns (ROWS)."""
        return torch.logsumexp(torch.matmul(a, b), dim=-1)


def get_inputs():
    return [torch.randn(ROWS, INNER), torch.randn(INNER, COLUMNS)]


def get_init_inputs():
    return []
