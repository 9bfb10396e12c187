"""The product of two matrices in other words: a linear layer, its weight the second one turned.

Idea: another expression is not another kernel. Both spellings end in the same call of the same
library; what differs is a view, which costs a microsecond.
"""

# expected: tie at small

import torch
import torch.nn as nn
import torch.nn.functional as functional


class ModelNew(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return functional.linear(a, b.transpose(0, 1))
