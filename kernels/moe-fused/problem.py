"""A mixture of experts, from tokens to tokens: gate, up, SwiGLU, down, and the sum over experts.

A router has chosen TOP experts for each token, with weights. `order` has all places of the chosen
experts (token * TOP + which), by expert and then by token, and `first` where each expert's places
begin in it, as moe-routing gives them. Every expert has three matrices. A token's result is the sum
over its experts of weight * down(silu(gate(x)) * up(x)). A PyTorch that has grouped products
(2.8 and later) makes three of them, else there is a product for each expert. Experts without tokens
do occur. GROUPED = 0 leaves the grouped products out.
"""

import torch
import torch.nn as nn
import torch.nn.functional as functional

TOKENS = 4096
EXPERTS = 64
TOP = 8
FEATURE_BLOCKS = 32
HIDDEN_BLOCKS = 16
BLOCK = 64
GROUPED = 1
DTYPE = torch.bfloat16


def ends_on_host(first, rows):
    """Where each expert's rows end; even shares where tensors have no values and only work is
    counted."""
    if not first.is_meta:
        return first[1:].tolist()
    return [(expert + 1) * rows // (len(first) - 1) for expert in range(len(first) - 1)]


def has_grouped(rows):
    """True if PyTorch's grouped product takes these rows."""
    return (
        GROUPED == 1
        and rows.is_cuda
        and rows.dtype == torch.bfloat16
        and hasattr(functional, "grouped_mm")
    )


def by_expert(rows, matrices, first):
    """The product of each expert's rows with its matrix: (rows, columns of all matrices)."""
    if has_grouped(rows):
        return functional.grouped_mm(rows, matrices.transpose(-2, -1), offs=first[1:])
    out = rows.new_empty(rows.shape[0], matrices.shape[1])
    begin = 0
    for expert, end in enumerate(ends_on_host(first, rows.shape[0])):
        if end > begin:
            out[begin:end] = functional.linear(rows[begin:end], matrices[expert])
        begin = end
    return out


def matrices(experts, rows, columns):
    """A matrix for each expert, as a parameter."""
    return nn.Parameter((torch.randn(experts, rows, columns) * columns**-0.5).to(DTYPE))


class Model(nn.Module):
    def __init__(self, experts: int, features: int, hidden: int):
        """gate and up: (experts, hidden, features), down: (experts, features, hidden)."""
        super().__init__()
        self.gate = matrices(experts, hidden, features)
        self.up = matrices(experts, hidden, features)
        self.down = matrices(experts, features, hidden)

    def forward(
        self,
        x: torch.Tensor,
        weights: torch.Tensor,
        order: torch.Tensor,
        first: torch.Tensor,
    ) -> torch.Tensor:
        """x: (TOKENS, FEATURES), weights: (TOKENS, TOP), order: (TOKENS * TOP), int32,
        first: (EXPERTS + 1), int32. Returns the shape of x.
        """
        tokens, top = weights.shape
        order = order.long()
        rows = x.index_select(0, order // top)
        gate = functional.silu(by_expert(rows, self.gate, first))
        hidden = gate * by_expert(rows, self.up, first)
        results = by_expert(hidden, self.down, first) * weights.flatten()[order][:, None]
        # Back to the places, so that a token's results are neighbours.
        placed = torch.empty_like(results).index_copy_(0, order, results)
        return placed.view(tokens, top, -1).sum(dim=1)


def get_inputs():
    top = min(TOP, EXPERTS)
    # Some experts are more popular than others.
    logits = torch.randn(TOKENS, EXPERTS) + 0.2 * torch.randn(EXPERTS)
    best, chosen = torch.topk(logits, top)
    experts = torch.sort(chosen.flatten(), stable=True)
    first = torch.searchsorted(experts.values, torch.arange(EXPERTS + 1))
    return [
        torch.randn(TOKENS, FEATURE_BLOCKS * BLOCK).to(DTYPE),
        torch.softmax(best, dim=-1).to(DTYPE),
        experts.indices.int(),
        first.int(),
    ]


def get_init_inputs():
    return [EXPERTS, FEATURE_BLOCKS * BLOCK, HIDDEN_BLOCKS * BLOCK]
