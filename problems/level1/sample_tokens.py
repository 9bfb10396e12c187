"""SAMPLES tokens for each row, drawn by the softmax of its logits, with the given random numbers.

Each sample has a number u of its own, uniform in (0, 1): (bits + 0.5) / 2**23. Its token is the
one in whose part of (0, 1) u lies, where each token has a part as long as its probability. The
parts may stand in any order: by number, as in the reference, by size, in blocks. So many answers
are right, and the file has a check of its own. It looks at two things:

- The tokens have the right distribution, by a chi-square test over all samples: tokens that are
  about as likely come as often as their probabilities say.
- Samples with the same token have numbers that lie together: no further apart than the token is
  likely. So the given numbers were used.
"""

import torch
import torch.nn as nn

ROWS = 64
VOCABULARY = 4096
SAMPLES = 64

# A right program fails one judgement in 10**8: the calls of one share that chance.
SMALLEST_CHANCE = 1e-8 / 10_000
EXPECTED_LEAST = 16  # samples of a group, at least
TOLERANCE = 1e-3  # of a place in (0, 1): sums of many float32 numbers differ by their order


class Model(nn.Module):
    def forward(self, logits: torch.Tensor, bits: torch.Tensor) -> torch.Tensor:
        """logits: (ROWS, VOCABULARY), bits: (ROWS, SAMPLES), int32, from 0 to 2**23 - 1. Returns
        (ROWS, SAMPLES), int64.
        """
        ends = torch.softmax(logits, dim=-1).cumsum(dim=-1)
        u = (bits + 0.5) / 2**23
        tokens = torch.searchsorted(ends, u * ends[:, -1:], right=True)
        return tokens.clamp(max=logits.shape[1] - 1)


def check(inputs, outputs):
    logits, bits = inputs
    (tokens,) = outputs
    outside = (tokens < 0) | (tokens >= logits.shape[1])
    if outside.any():
        row, sample = divmod(int(outside.flatten().to(torch.uint8).argmax()), tokens.shape[1])
        return f"row {row}, sample {sample}: {int(tokens[row, sample])} is no token"
    p = torch.softmax(logits.double(), dim=-1)
    there = torch.isfinite(p).all(dim=-1)  # NaN and infinities give no distribution
    p, tokens, bits = p[there], tokens[there], bits[there]
    return check_distribution(p, tokens) or check_numbers(p, tokens, (bits.double() + 0.5) / 2**23)


def class_of(p):
    """Returns the class of a probability: four for each factor of 2, the likeliest first."""
    return (-4 * torch.log2(p.clamp(min=2.0**-40))).long()


def check_distribution(p, tokens):
    chosen = p.gather(1, tokens)
    mass = torch.bincount(class_of(p).flatten(), weights=p.flatten(), minlength=161)
    counts = torch.bincount(class_of(chosen).flatten(), minlength=161)
    samples = tokens.shape[1]
    groups = [[0.0, 0]]  # of classes: samples expected, samples given
    for expected, count in zip((mass * samples).tolist(), counts.tolist()):
        if groups[-1][0] >= EXPECTED_LEAST:
            groups.append([0.0, 0])
        groups[-1][0] += expected
        groups[-1][1] += count
    if groups[-1][0] < EXPECTED_LEAST and len(groups) > 1:
        expected, count = groups.pop()
        groups[-1][0] += expected
        groups[-1][1] += count
    freedom = len(groups) - 1
    if freedom == 0:
        return None
    chi_square = sum((count - expected) ** 2 / expected for expected, count in groups)
    half = torch.tensor([freedom / 2, chi_square / 2], dtype=torch.float64)
    if torch.special.gammaincc(half[0], half[1]) >= SMALLEST_CHANCE:
        return None
    expected, count = max(groups, key=lambda group: (group[1] - group[0]) ** 2 / group[0])
    return (
        "the tokens are not drawn by their probabilities: of a group of tokens that are about as "
        f"likely, {expected:.0f} samples are expected, and {count} were given (chi-square "
        f"{chi_square:.0f}, {freedom} degrees of freedom)"
    )


def check_numbers(p, tokens, u):
    by_number = torch.sort(u, dim=-1)
    by_token = torch.sort(tokens.gather(1, by_number.indices), dim=-1, stable=True)
    token, u = by_token.values, by_number.values.gather(1, by_token.indices)
    place = torch.arange(token.shape[1], device=token.device).expand_as(token)
    begins = torch.ones_like(token, dtype=torch.bool)
    begins[:, 1:] = token[:, 1:] != token[:, :-1]
    # The first sample with the same token has the smallest number.
    first = torch.where(begins, place, torch.zeros_like(place)).cummax(dim=-1).values
    least, likely = u.gather(1, first), p.gather(1, token)
    wrong = u - least > likely + TOLERANCE
    if not wrong.any():
        return None
    row, sample = divmod(int(wrong.flatten().to(torch.uint8).argmax()), token.shape[1])
    return (
        f"row {row} of those with finite probabilities: token {int(token[row, sample])}, with "
        f"probability {float(likely[row, sample]):.3g}, stands for numbers from "
        f"{float(least[row, sample]):.4f} to {float(u[row, sample]):.4f}"
    )


def get_inputs():
    logits = 3 * torch.randn(ROWS, VOCABULARY)
    return [logits, torch.randint(0, 2**23, (ROWS, SAMPLES), dtype=torch.int32)]


def get_init_inputs():
    return []
