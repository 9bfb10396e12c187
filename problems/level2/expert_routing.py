"""The router of a mixture of experts: which experts each token goes to, with which weights, and the
order in which a grouped product reads tokens.

A token goes to the TOP experts with the largest logits; of equal ones, to those with the lowest
numbers. Its weights are the softmax of the chosen logits, which is the softmax of all, normalised
again. `order` has all places of the chosen experts, flattened, by expert and then by token, and
`first` where each expert's places begin in it.
"""

import torch
import torch.nn as nn

TOKENS = 256
EXPERTS = 64
TOP = 4


class Model(nn.Module):
    def __init__(self, top: int):
        super().__init__()
        self.top = top

    def forward(self, logits: torch.Tensor):
        """logits: (TOKENS, EXPERTS). Returns weights: (TOKENS, TOP), the chosen experts: (TOKENS,
        TOP), order: (TOKENS * TOP), first: (EXPERTS + 1), all but weights int64.
        """
        experts = logits.shape[1]
        ordered = torch.sort(logits, dim=-1, descending=True, stable=True)
        weights = torch.softmax(ordered.values[:, : self.top], dim=-1)
        chosen = ordered.indices[:, : self.top]
        by_expert = torch.sort(chosen.flatten(), stable=True)
        numbers = torch.arange(experts + 1, device=logits.device)
        first = torch.searchsorted(by_expert.values, numbers)
        return weights, chosen, by_expert.indices, first


def get_inputs():
    # Some experts are more popular than others.
    return [torch.randn(TOKENS, EXPERTS) + 0.5 * torch.randn(EXPERTS)]


def get_init_inputs():
    return [TOP]
