"""A residual plus rows picked by index, weighted by the softmax of their scores.

Each row of the result picks CHOICES rows of the source, as a mixture of experts does when it brings
the experts' results back together.
"""

import torch
import torch.nn as nn

ROWS = 2048
SOURCE_ROWS = 4096
CHOICES = 4
FEATURES = 256


class Model(nn.Module):
    def forward(
        self,
        residual: torch.Tensor,
        source: torch.Tensor,
        choices: torch.Tensor,
        scores: torch.Tensor,
    ) -> torch.Tensor:
        """residual: (ROWS, FEATURES), source: (SOURCE_ROWS, FEATURES),
        choices: (ROWS, CHOICES), int64, below SOURCE_ROWS, scores: (ROWS, CHOICES).

        Returns (ROWS, FEATURES).
        """
        weights = torch.softmax(scores, dim=-1)
        return residual + (weights.unsqueeze(-1) * source[choices]).sum(dim=1)


def get_inputs():
    return [
        torch.randn(ROWS, FEATURES),
        torch.randn(SOURCE_ROWS, FEATURES),
        torch.randint(SOURCE_ROWS, (ROWS, CHOICES)),
        torch.randn(ROWS, CHOICES),
    ]


def get_init_inputs():
    return []
