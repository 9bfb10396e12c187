"""The judge's own values, for a get_inputs() that gives the same values under every seed: it seeds
itself, or returns constants of its module. A candidate could remember them and their results.

Shapes, dtypes, range, signs and the shares of values stay. Only floating-point tensors change, and
of these none that is a domain's: masks, labels, sorted values, few elements. Probabilities are
shuffled where they sum to one, and a symmetric matrix keeps its symmetry and its eigenvalues.
"""

import torch

from assay_host import draws, sharing, values

_SAMPLE = 4096  # elements of a tensor that are compared
_ELEMENTS_MIN = 8
_JITTER = 1 / 16  # of a value, so that sums change too


def digest(leaves):
    """Returns what two draws are compared by: of each leaf the number, or the shape, elements from
    all over it, and their sum.
    """
    return [_digest_of(value) for _, value in leaves]


def same(a, b):
    """Compares two digests."""
    return len(a) == len(b) and all(map(_same_leaf, a, b))


def fixed(leaves, a, b):
    """Returns the names of tensors that have the same values in two draws, by their digests, and
    that no kind of draw changes: masks, lengths, edges of a graph.
    """
    return [
        name
        for (name, value), one, other in zip(leaves, a, b)
        if isinstance(value, torch.Tensor) and value.numel() > 1 and _same_leaf(one, other)
        if not draws.may_change(value)
    ]


def may_change(leaves):
    """Returns True if change_all() would change an input."""
    return any(_changes(value) for _, value in leaves)


def change_all(leaves, seed):
    """Returns (name, value) leaves with values of the judge's own."""
    generators = draws.Generators(seed & (2**63 - 1))
    own = [
        (name, _own(value.detach(), generators) if _changes(value) else value)
        for name, value in leaves
    ]
    return sharing.keep(leaves, own)


def _digest_of(value):
    if not isinstance(value, torch.Tensor):
        return value
    flat = values.wide(value.detach()).reshape(-1)
    step = max(1, flat.numel() // _SAMPLE)
    return flat[::step].clone(), flat.sum()


def _same_leaf(a, b):
    if not isinstance(a, tuple) or not isinstance(b, tuple):
        # A number that is NaN equals itself here.
        return type(a) is type(b) and (a == b or (a != a and b != b))
    return all(values.same_bytes(one, other) for one, other in zip(a, b))


def _changes(value):
    if not isinstance(value, torch.Tensor) or not value.dtype.is_floating_point:
        return False
    if value.numel() < _ELEMENTS_MIN:
        return False
    facts = draws.Facts(value.detach())
    return not facts.is_structure and not draws.is_sorted(facts.values)


def _own(tensor, generators):
    facts = draws.Facts(tensor)
    found = facts.values
    generator = generators.on(found.device)

    def permutation(count):
        return torch.randperm(count, generator=generator, device=found.device)

    if facts.symmetric and found.dim() == 2:
        order = permutation(found.shape[0])
        return found[order][:, order].to(tensor.dtype)
    summed = draws.summing_to_one(facts)
    if summed is not None:
        return found.index_select(summed, permutation(found.shape[summed])).to(tensor.dtype)
    flat = found.view(-1)
    options = {"generator": generator, "device": found.device}
    whole = all(bool((piece == piece.round()).all()) for (piece,) in values.in_pieces(found))

    def own(piece, kept=None):
        drawn = flat[torch.randint(0, flat.numel(), piece.shape, **options)]
        if not whole:
            share = torch.rand(piece.shape, dtype=piece.dtype, **options)
            drawn = (drawn * (1 + _JITTER * (2 * share - 1))).clamp(facts.low, facts.high)
        return drawn if kept is None else torch.where(kept, piece, drawn)

    return values.by_pieces(own, tensor.dtype, *facts.with_kept())
