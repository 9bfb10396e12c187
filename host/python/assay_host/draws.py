"""Adversarial draws: change the values of an ordinary draw so that careless kernels fail.

Only floating-point tensors change. Shape, dtype and structure stay: every change is a function of
the element's own value (so a symmetric matrix stays symmetric), zeros that are structure (a
triangle, a mask) stay zero, a tensor of at most two distinct values (a mask, labels) and infinities
stay as they are, and where the ordinary draw has no negative value, neither has this one. One kind
alone changes signs, and has a file of its own: signs.py. docs/problems.md lists the kinds.
"""

import itertools
import math

import torch

from assay_host import values

(
    ORDINARY,
    LARGE_OFFSET,
    WIDE_RANGE,
    TINY_SCALE,
    HUGE_SCALE,
    SIGNED_ZEROS,
    TIES,
    SMALL_INTEGERS,
    ZERO_ONE,
    OUTLIER,
    SPECIAL_VALUES,
    SIGNS,  # signs.py
) = range(12)
KIND_COUNT = 12

# Share of exact zeros from which on they are taken for structure.
_ZERO_SHARE = 0.25
# Fewer values sum to one, or are sorted, by chance.
_RELATED_MIN = 8


class Facts:
    """Facts about an ordinary tensor, in a working precision that holds every change."""

    def __init__(self, tensor):
        self.dtype = tensor.dtype
        work = torch.float64 if tensor.dtype == torch.float64 else torch.float32
        self.values = tensor.to(work).contiguous()
        self.kept = None  # elements that stay as they are; None: none
        inside = self.values
        pieces = values.in_pieces(self.values)
        if not math.isfinite(sum(piece.sum(dtype=torch.float64).item() for (piece,) in pieces)):
            self.kept = values.by_pieces(lambda x: ~torch.isfinite(x), torch.bool, self.values)
            pieces = values.in_pieces(*self.with_kept())
            inside = torch.cat([piece[~kept] for piece, kept in pieces])
        self._measure(inside)
        if tensor.numel() > 1 and self.low <= 0 <= self.high:
            pieces = values.in_pieces(self.values)
            nonzero = sum(torch.count_nonzero(piece).item() for (piece,) in pieces)
            if nonzero <= (1 - _ZERO_SHARE) * tensor.numel():
                zeros = self.values == 0
                self.kept = zeros if self.kept is None else self.kept | zeros
        self.is_structure = tensor.numel() > 1 and self._has_two_values()
        self.non_negative = self.low >= 0
        self.symmetric = (
            tensor.dim() >= 2
            and tensor.shape[-1] == tensor.shape[-2]
            and torch.equal(self.values, self.values.transpose(-1, -2))
        )
        self.narrow_range = torch.finfo(tensor.dtype).max < 1e6  # float16
        self.narrow = torch.finfo(tensor.dtype).eps > 1e-4  # the half precisions, and less

    def with_kept(self):
        """Returns the values, and beside them what is kept, if anything is."""
        return (self.values,) if self.kept is None else (self.values, self.kept)

    def _measure(self, inside):
        self.low = self.high = self.mean = 0.0
        self.deviation = 1.0
        if inside.numel() == 0:
            return
        low, high = torch.aminmax(inside)
        self.low, self.high = low.item(), high.item()
        if inside.numel() == 1:
            self.deviation = abs(self.low) or 1.0
            return
        deviation, mean = torch.std_mean(inside, unbiased=False)
        self.mean, self.deviation = mean.item(), deviation.item()

    def _has_two_values(self):
        """Returns True if there are at most two distinct finite values; a short look settles most
        tensors.
        """
        short = self.values.flatten()[:256]
        for (part,) in itertools.chain([(short,)], values.in_pieces(self.values)):
            ends = (part == self.low) | (part == self.high) | ~torch.isfinite(part)
            if not bool(ends.all()):
                return False
        return True

    def standardised(self, part):
        """Returns some of the values shifted and scaled as all are to mean 0 and deviation 1."""
        return (part - self.mean) / (self.deviation or 1.0)

    def uniform(self, part):
        """Returns a number in [0, 1) from each element's value: random between values, equal for
        equal ones.
        """
        scaled = self.standardised(part) * 7919.773
        return scaled - torch.floor(scaled)


def summing_to_one(facts):
    """Returns the dimension along which values are probabilities that sum to one; None without."""
    if facts.low < 0 or facts.high > 1 or facts.values.numel() < _RELATED_MIN:
        return None
    spacing = 0.01 if facts.narrow else 1e-4
    for dim, size in enumerate(facts.values.shape):
        if size > 1 and bool(((facts.values.sum(dim) - 1).abs() < spacing).all()):
            return dim
    return None


def is_sorted(tensor):
    """Returns True if no value is below the one before it in its row."""
    if tensor.dim() == 0 or tensor.shape[-1] < 2 or tensor.numel() < _RELATED_MIN:
        return False
    return bool((tensor[..., 1:] >= tensor[..., :-1]).all())


def _large_offset(facts, part):
    # In a short dtype a deviation of 0.1 around 1000 would round away: at least four spacings. In
    # float8_e4m3fn 1000 itself would not fit.
    info = torch.finfo(facts.dtype)
    offset = min(1000.0, info.max / 8)
    deviation = max(0.1, 4 * offset * info.eps)
    return offset + deviation * facts.standardised(part)


def _wide_range(facts, part):
    decades = 2.0 if facts.narrow_range else 4.0
    return part * torch.pow(
        torch.tensor(10.0, dtype=part.dtype), decades * (2 * facts.uniform(part) - 1)
    )


def _tiny_scale(facts, part):
    return part * (2.0**-10 if facts.narrow_range else 2.0**-40)


def _huge_scale(facts, part):
    return part * (2.0**6 if facts.narrow_range else 2.0**20)


def _signed_zeros(facts, part):
    share = facts.uniform(part)
    zero = torch.zeros_like(part)
    negative = zero if facts.non_negative else -zero
    return torch.where(share < 0.25, zero, torch.where(share < 0.5, negative, part))


def _ties(facts, part):
    steps = facts.standardised(part).round().clamp(-2, 2)
    return steps.abs() if facts.non_negative else steps


def _small_integers(facts, part):
    steps = (3 * facts.standardised(part)).round().clamp(-8, 8)
    return steps.abs() if facts.non_negative else steps


def _zero_one(facts, part):
    return (facts.uniform(part) < 0.5).to(part.dtype)


def _mirrored(facts, mask):
    return mask | mask.transpose(-1, -2) if facts.symmetric else mask


def _row(facts):
    """Returns how many elements get their outliers together."""
    shape = facts.values.shape
    return facts.values.numel() if facts.symmetric or not shape else shape[-1]


def _outlier(facts, part, kept, generators):
    """Makes one element a row the largest by far. `part`: flat, rows."""
    shape, device = facts.values.shape, part.device
    if not shape:
        return part * 100
    rows = part.view(shape if facts.symmetric else (-1, shape[-1]))
    # Random ranks among the elements that may change; a row of structure alone keeps its values.
    rank = torch.rand(
        rows.shape, generator=generators.on(device), dtype=torch.float32, device=device
    )
    if kept is not None:
        rank.masked_fill_(kept.view(rows.shape), -1)
    mask = torch.zeros(rows.shape, dtype=torch.bool, device=device)
    mask.scatter_(-1, rank.argmax(-1, keepdim=True), True)
    size = max(abs(facts.low), abs(facts.high)) * (100 if facts.narrow_range else 1e4)
    outlier = size * torch.where(rows < 0, -1.0, 1.0).to(rows.dtype)
    return torch.where(_mirrored(facts, mask), outlier, rows).flatten()


def _special_values(facts, generators):
    """Makes two elements each NaN, infinities, one of the smallest normal values, and values whose
    squares are far from overflow. With larger ones a sum of products may overflow or not, by its
    order. Smaller ones count as 0 in some programs; beside an infinity some right programs then
    give NaN, and some do not.
    """
    info = torch.finfo(facts.dtype)
    # No powers of two: a product of parts would multiply an infinity by their rest, 0.
    large, small = 0.7 * 2.0 ** (math.frexp(info.max)[1] // 2 - 1), 1.3 * info.tiny
    specials = [float("nan"), float("inf"), small, large]
    if not facts.non_negative:
        specials += [float("-inf"), -small, -large]
    result = facts.values.clone()
    count, device = result.numel(), result.device
    generator = generators.on(device)
    # Few places, so that most rows stay finite and comparable; a tiny tensor gets only the first of
    # them.
    for index, special in enumerate(specials[: max(1, count // 8)]):
        shape = (2 if count >= 64 else 1,)
        places = torch.randint(0, count, shape, generator=generator, device=device)
        mask = torch.zeros(count, dtype=torch.bool, device=device)
        mask[places] = True
        result[_mirrored(facts, mask.view(result.shape))] = special
    return result if facts.kept is None else torch.where(facts.kept, facts.values, result)


_ELEMENT_BY_ELEMENT = {
    LARGE_OFFSET: _large_offset,
    WIDE_RANGE: _wide_range,
    TINY_SCALE: _tiny_scale,
    HUGE_SCALE: _huge_scale,
    SIGNED_ZEROS: _signed_zeros,
    TIES: _ties,
    SMALL_INTEGERS: _small_integers,
    ZERO_ONE: _zero_one,
}


class Generators:
    """One generator for each device that holds tensors, all with the same seed."""

    def __init__(self, seed):
        self._seed = seed
        self._by_device = {}

    def on(self, device):
        if device not in self._by_device:
            self._by_device[device] = torch.Generator(device).manual_seed(self._seed)
        return self._by_device[device]


def change(tensor, kind, generators):
    """Returns the tensor changed by this kind of draw: a new tensor, or the same one if nothing may
    change.
    """
    if kind == ORDINARY or not tensor.dtype.is_floating_point or tensor.numel() == 0:
        return tensor
    facts = Facts(tensor)
    if facts.is_structure:
        return tensor
    if kind == SPECIAL_VALUES:
        return _special_values(facts, generators).to(tensor.dtype)
    # Rounding to a short dtype must not overflow either.
    largest = torch.finfo(tensor.dtype).max
    least = 0 if facts.non_negative else -largest

    def changed(part, kept=None):
        if kind == OUTLIER:
            made = _outlier(facts, part, kept, generators)
        else:
            made = _ELEMENT_BY_ELEMENT[kind](facts, part)
        made = made.clamp(least, largest)
        return made if kept is None else torch.where(kept, part, made)

    row = _row(facts) if kind == OUTLIER else 1
    return values.by_pieces(changed, tensor.dtype, *facts.with_kept(), row=row)


def _nudged(tensor, size, generators):
    if not tensor.dtype.is_floating_point or tensor.numel() == 0 or Facts(tensor).is_structure:
        return tensor
    size = max(size, torch.finfo(tensor.dtype).eps)  # less would round away
    largest = torch.finfo(tensor.dtype).max
    options = {"generator": generators.on(tensor.device), "device": tensor.device}

    def nudged(part):
        part = part.double()
        share = torch.rand(part.shape, dtype=torch.float64, **options)
        made = (part * (1 + size * (2 * share - 1))).clamp(-largest, largest)
        return torch.where(torch.isfinite(part), made, part)

    return values.by_pieces(nudged, tensor.dtype, tensor)


def nudge_all(leaves, seed, size):
    """Returns (name, value) leaves whose floating-point elements differ from the given ones by a
    random share of themselves, up to `size` or one spacing of their dtype, rounded to that dtype.
    Masks and labels stay.
    """
    generators = Generators(seed)
    return [
        (name, _nudged(value, size, generators) if isinstance(value, torch.Tensor) else value)
        for name, value in leaves
    ]


def change_all(leaves, kind, seed):
    """Applies a kind to (name, value) leaves; returns them and how many tensors changed."""
    generators = Generators((seed * 31 + kind) & (2**63 - 1))
    result = []
    changed = 0
    for name, value in leaves:
        if isinstance(value, torch.Tensor):
            other = change(value.detach(), kind, generators)
            changed += other is not value and kind != ORDINARY and other.dtype.is_floating_point
            value = other
        result.append((name, value))
    return result, changed
