"""A selective state space block: a gated scan along the sequence whose steps depend on the input.

Each of INNER channels holds STATES numbers. At each position they decay by exp(-step * rate), take
in step * channel * write, and are read by a product with `read`; step, write and read are computed
from a short causal convolution of the projected input.
"""

import torch
import torch.nn as nn
import torch.nn.functional as functional

BATCH = 2
SEQUENCE = 128
FEATURES = 64
INNER = 128
STATES = 16
RANK = 8
KERNEL = 4


def make_linear(features_in: int, features_out: int, bias: bool) -> nn.Linear:
    linear = nn.Linear(features_in, features_out, bias=bias)
    nn.init.normal_(linear.weight, std=features_in**-0.5)
    return linear


class Model(nn.Module):
    def __init__(self, features: int, inner: int, states: int, rank: int, kernel: int):
        super().__init__()
        self.sizes = [rank, states, states]
        self.padding = kernel - 1
        self.project_in = make_linear(features, 2 * inner, bias=False)
        self.convolution = nn.Conv1d(inner, inner, kernel, groups=inner)
        self.select = make_linear(inner, rank + 2 * states, bias=False)
        self.step = make_linear(rank, inner, bias=True)
        # Steps around 0.3: what a state took in is still there after several positions.
        nn.init.normal_(self.step.bias, mean=-1.0, std=0.5)
        self.log_rate = nn.Parameter(0.5 * torch.randn(inner, states))
        self.skip = nn.Parameter(1.0 + 0.2 * torch.randn(inner))
        self.project_out = make_linear(inner, features, bias=False)

    def scan(
        self, x: torch.Tensor, step: torch.Tensor, write: torch.Tensor, read: torch.Tensor
    ) -> torch.Tensor:
        """x, step: (BATCH, SEQUENCE, INNER); write, read: (BATCH, SEQUENCE, STATES).

        Returns (BATCH, SEQUENCE, INNER).
        """
        decay = torch.exp(-step.unsqueeze(-1) * torch.exp(self.log_rate))
        taken = (step * x).unsqueeze(-1) * write.unsqueeze(2)
        state = torch.zeros_like(taken[:, 0])
        results = []
        for position in range(x.shape[1]):
            state = decay[:, position] * state + taken[:, position]
            results.append(torch.matmul(state, read[:, position].unsqueeze(-1)).squeeze(-1))
        return torch.stack(results, dim=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (BATCH, SEQUENCE, FEATURES). Returns the same shape."""
        inner, gate = self.project_in(x).chunk(2, dim=-1)
        padded = functional.pad(inner.transpose(1, 2), (self.padding, 0))
        inner = functional.silu(self.convolution(padded).transpose(1, 2))
        step, write, read = self.select(inner).split(self.sizes, dim=-1)
        scanned = self.scan(inner, functional.softplus(self.step(step)), write, read)
        return self.project_out((scanned + self.skip * inner) * functional.silu(gate))


def get_inputs():
    return [torch.randn(BATCH, SEQUENCE, FEATURES)]


def get_init_inputs():
    return [FEATURES, INNER, STATES, RANK, KERNEL]
