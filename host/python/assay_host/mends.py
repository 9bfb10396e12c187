"""Draws beyond gate 1's, for `assay audit` alone: it looks for one that shows a mutant which all of
gate 1's draws let pass.

A problem's author would mend the problem with such inputs, so every tensor of the kind changes,
whatever its values; a draw on which the reference is meaningless drops out.
"""

import torch

from assay_host import sharing


def _shuffled(tensor, generator):
    order = torch.randperm(tensor.numel(), generator=generator)
    return tensor.flatten()[order].view(tensor.shape)


def _mostly_zero(tensor, generator):
    return tensor * (torch.rand(tensor.shape, generator=generator) < 0.125)


def _large_at_the_end(tensor, _):
    changed = tensor.clone()
    flat = changed.view(-1)
    flat[-1] = 1e3 * max(1.0, tensor.abs().max().item())
    return changed


def _uniform(tensor, generator):
    return torch.rand(tensor.shape, generator=generator, dtype=torch.float32)


def _normal(tensor, generator):
    return torch.randn(tensor.shape, generator=generator, dtype=torch.float32)


def _bits(tensor, generator):
    return torch.randint(0, 2, tensor.shape, generator=generator)


def _spread(tensor, generator):
    """Returns whole numbers between the tensor's smallest and largest."""
    low, high = int(tensor.min()), int(tensor.max())
    return torch.randint(low, high + 1, tensor.shape, generator=generator)


# What a problem's author would do, whether it changes the floating-point tensors or all others,
# and how.
_MENDS = (
    ("inputs scaled by 4", True, lambda x, _: x * 4),
    ("inputs scaled by 16", True, lambda x, _: x * 16),
    ("inputs scaled by 1/16", True, lambda x, _: x / 16),
    ("inputs shifted by 1", True, lambda x, _: x + 1),
    ("inputs shifted by 10", True, lambda x, _: x + 10),
    ("inputs shifted by -0.5", True, lambda x, _: x - 0.5),
    ("negated inputs", True, lambda x, _: -x),
    ("inputs without negative values", True, lambda x, _: x.abs()),
    ("normally distributed inputs", True, _normal),
    ("inputs uniform between 0 and 1", True, _uniform),
    ("inputs that are mostly zero", True, _mostly_zero),
    ("inputs with one large value at the end", True, _large_at_the_end),
    ("shuffled inputs", True, _shuffled),
    ("integers drawn anew from their range", False, _spread),
    ("integers 0 and 1 at random", False, _bits),
)
FIRST = 64  # beside the numbers of the wire's DrawKind
KINDS = range(FIRST, FIRST + len(_MENDS))


def catalog():
    return [{"kind": kind, "words": _MENDS[kind - FIRST][0]} for kind in KINDS]


def _workable(tensor):
    """Returns the tensor contiguous, and short floating-point types as float32, which has every
    operator on the CPU.
    """
    short = tensor.dtype in (torch.float16, torch.bfloat16)
    return (tensor.detach().float() if short else tensor.detach()).contiguous()


def change_all(leaves, kind, seed):
    """As draws.change_all."""
    generator = torch.Generator().manual_seed((seed * 31 + kind) & (2**63 - 1))
    _, floating, change = _MENDS[kind - FIRST]
    result = []
    changed = 0
    for name, value in leaves:
        if isinstance(value, torch.Tensor) and value.numel() > 0:
            if value.dtype.is_floating_point == floating:
                value = change(_workable(value), generator).to(value.dtype)
                changed += 1
        result.append((name, value))
    return sharing.keep(leaves, result), changed
