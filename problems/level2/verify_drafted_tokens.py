"""Speculative decoding: which drafted tokens stand, and which token comes next.

A small model drafted DRAFTED tokens for each sequence, from its own probabilities q; the large
one has probabilities p for each of them, and for one token more. A drafted token stands if u * q <
p, with u uniform in [0, 1), and all before it stand. At the first that falls the next token is
drawn by the residual max(p - q, 0), which is not zero then, as the token's own q exceeds its p; if
all stand, by p of the token after them. So tokens are distributed as the large model alone would
draw them.

Randomness is an input: u, and for the draw one number a token of the vocabulary, the reciprocal of
an exponential one. The token with the largest weight * noise is drawn with a probability that is
proportional to its weight. Values of u that lie within 0.001 of p / q are moved away, so that
rounding does not decide which tokens stand.
"""

import torch
import torch.nn as nn

BATCH = 8
DRAFTED = 4
OCTETS = 256  # of the vocabulary, which is padded to a multiple of 8


class Model(nn.Module):
    def forward(
        self,
        target: torch.Tensor,
        draft: torch.Tensor,
        tokens: torch.Tensor,
        u: torch.Tensor,
        noise: torch.Tensor,
    ):
        """target: (BATCH, DRAFTED + 1, VOCABULARY), draft: (BATCH, DRAFTED, VOCABULARY), logits,
        tokens: (BATCH, DRAFTED), int64, u: (BATCH, DRAFTED), noise: (BATCH, VOCABULARY).

        Returns how many drafted tokens stand, the next token, both int64, and its p, each (BATCH).
        """
        drafted = tokens.shape[1]
        p = torch.softmax(target, dim=-1)
        q = torch.softmax(draft, dim=-1)
        place = tokens.unsqueeze(-1)
        p_of = p[:, :drafted].gather(-1, place).squeeze(-1)
        q_of = q.gather(-1, place).squeeze(-1)
        stand = (u * q_of < p_of).long().cumprod(dim=-1).sum(dim=-1)
        row = stand[:, None, None].expand(-1, 1, p.shape[-1])
        p_next = p.gather(1, row).squeeze(1)
        q_next = q.gather(1, row.clamp(max=drafted - 1)).squeeze(1)
        residual = (p_next - q_next).clamp(min=0)
        left = stand < drafted
        weight = torch.where(left[:, None], residual, p_next)
        following = torch.argmax(weight * noise, dim=-1)
        return stand, following, p_next.gather(-1, following.unsqueeze(-1)).squeeze(-1)


def get_inputs():
    vocabulary = 8 * OCTETS
    target = 3 * torch.randn(BATCH, DRAFTED + 1, vocabulary)
    draft = target[:, :DRAFTED] + torch.randn(BATCH, DRAFTED, vocabulary)
    logs = torch.log_softmax(draft, dim=-1)
    # Drawn by q: the largest of the logarithm and Gumbel noise.
    tokens = torch.argmax(logs - torch.empty_like(logs).exponential_().log(), dim=-1)
    place = tokens.unsqueeze(-1)
    log_q = logs.gather(-1, place).squeeze(-1)
    log_p = torch.log_softmax(target[:, :DRAFTED], dim=-1).gather(-1, place).squeeze(-1)
    ratio = torch.exp(log_p - log_q)
    u = torch.rand(BATCH, DRAFTED)
    away = torch.where(ratio > 0.5, ratio - 0.002, ratio + 0.002)
    u = torch.where((u - ratio).abs() < 0.001, away, u)
    noise = 1 / torch.empty(BATCH, vocabulary).exponential_()
    return [target, draft, tokens, u, noise]


def get_init_inputs():
    return []
