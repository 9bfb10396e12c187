"""The selective state space block in Python, with the least that can be left in its loop.

Idea: the reference runs six small operators a position: two selections, a product, a sum, the
reading product and its reshaping. What does not depend on the states before goes out of the loop:
the tensors are split into positions at once, decay and addition are one fused operator, and all
positions are read by one product after the loop.
"""

# expected: faster at small

import torch
import torch.nn as nn
import torch.nn.functional as functional


class ModelNew(nn.Module):
    def __init__(self, features: int, inner: int, states: int, rank: int, kernel: int):
        super().__init__()
        self.sizes = [rank, states, states]
        self.padding = kernel - 1
        # The order of the reference, so that the parameters are drawn as its are.
        self.project_in = self.make_linear(features, 2 * inner, bias=False)
        self.convolution = nn.Conv1d(inner, inner, kernel, groups=inner)
        self.select = self.make_linear(inner, rank + 2 * states, bias=False)
        self.step = self.make_linear(rank, inner, bias=True)
        nn.init.normal_(self.step.bias, mean=-1.0, std=0.5)
        self.log_rate = nn.Parameter(0.5 * torch.randn(inner, states))
        self.skip = nn.Parameter(1.0 + 0.2 * torch.randn(inner))
        self.project_out = self.make_linear(inner, features, bias=False)

    @staticmethod
    def make_linear(features_in: int, features_out: int, bias: bool) -> nn.Linear:
        linear = nn.Linear(features_in, features_out, bias=bias)
        nn.init.normal_(linear.weight, std=features_in**-0.5)
        return linear

    def scan(
        self, x: torch.Tensor, step: torch.Tensor, write: torch.Tensor, read: torch.Tensor
    ) -> torch.Tensor:
        """x, step: (BATCH, SEQUENCE, INNER); write, read: (BATCH, SEQUENCE, STATES).

        Returns (BATCH, SEQUENCE, INNER).
        """
        # The position first: each is one piece of memory.
        steps = step.transpose(0, 1).unsqueeze(-1)
        decays = torch.exp(steps * -torch.exp(self.log_rate))
        states = (steps * x.transpose(0, 1).unsqueeze(-1)) * write.transpose(0, 1).unsqueeze(2)
        rows = states.unbind()
        # Each position's state replaces what it took in: the row is read, then written.
        for state, decay, before in zip(rows[1:], decays.unbind()[1:], rows):
            state.addcmul_(decay, before)
        return torch.matmul(states, read.transpose(0, 1).unsqueeze(-1)).squeeze(-1).transpose(0, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (BATCH, SEQUENCE, FEATURES). Returns the same shape."""
        inner, gate = self.project_in(x).chunk(2, dim=-1)
        padded = functional.pad(inner.transpose(1, 2), (self.padding, 0))
        inner = functional.silu(self.convolution(padded).transpose(1, 2))
        step, write, read = self.select(inner).split(self.sizes, dim=-1)
        scanned = self.scan(inner, functional.softplus(self.step(step)), write, read)
        return self.project_out((scanned + self.skip * inner) * functional.silu(gate))
