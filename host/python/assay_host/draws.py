"""Adversarial draws: change the values of an ordinary draw so that careless kernels fail.

Floating-point tensors change, and in one kind short integers, which nothing is indexed by. Shape,
dtype and structure stay: every change is a function of the element's own value (so a symmetric
matrix stays symmetric), zeros that are structure (a triangle, a mask) stay zero, a tensor of at
most two distinct values (a mask, labels) and infinities stay as they are, and where the ordinary
draw has no negative value, neither has this one. One kind alone changes signs, and has a file of
its own: signs.py. docs/problems.md lists the kinds.
"""

import itertools
import math

import torch

from assay_host import sharing, values

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
    PATCH,
) = range(13)
KIND_COUNT = 13

# Share of exact zeros from which on they are taken for structure.
_ZERO_SHARE = 0.25
# See _with_one_that_dominates.
_ROWS_BESIDE_ONE = 2**16
# Fewer values sum to one, or are sorted, by chance.
_RELATED_MIN = 8
# A tensor of fewer elements has no patch; with fewer rows, each of them has one.
_PATCHED_MIN, _PATCHED_ROWS = 32, 8


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
    first = tensor[(0,) * (tensor.dim() - 1)]  # settles most tensors
    return _ascends(first) and _ascends(tensor)


def _ascends(tensor):
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


def _with_one_that_dominates(facts, tensor, generators):
    """Makes the outlier of one row so large that its square outweighs those of all others: a sum
    that skips its place shows. Beyond so many rows, the others would be lost beside it in float32
    by the order of a plain loop.
    """
    rows = tensor.numel() // _row(facts) if facts.values.shape else 1
    if facts.narrow_range or not 1 < rows <= _ROWS_BESIDE_ONE:
        return tensor
    options = {"generator": generators.on(tensor.device), "device": tensor.device}
    row = tensor.view(rows, -1)[torch.randint(0, rows, (1,), **options).item()]
    place = row.abs().argmax()
    row[place] *= 4 * math.sqrt(rows)
    return tensor


_REPEATED, _LARGEST, _SMALL, _LARGE = range(4)
_PATCHES = (
    (_REPEATED,),
    (_REPEATED, _LARGEST, _SMALL, _LARGE),
    (_LARGEST, _SMALL),
    (_LARGE,),
)


def _patched(facts, tensor, generators):
    """Changes a run of rows, or of one row's elements, and leaves all others as they are: what a
    glance at a few values says of the rest is wrong. By the seed's remainder of division by 4 the
    run (0) repeats values from elsewhere; (1) does that, lies close below the largest value, is
    scaled down or is scaled up, a part each, and in a part of each line alone, so that a look along
    the first row or the first column meets nothing; (2) lies below the largest value or is scaled
    down; or (3) is scaled up, which not every reference bears.
    """
    if facts.symmetric or tensor.numel() < _PATCHED_MIN or not facts.values.shape:
        return tensor
    lines = facts.values.view(-1, tensor.shape[-1])
    dim = 0 if len(lines) >= _PATCHED_ROWS else 1
    options = {"generator": generators.on(tensor.device), "device": tensor.device}
    ways = _PATCHES[generators.seed % len(_PATCHES)]

    def place(count, run, begin=1):
        return torch.randint(begin, count - run + 1, (1,), **options).item()

    count, width = lines.shape[dim], lines.shape[1 - dim]
    run = max(1, count // 16)
    across = width // 4 if len(ways) == len(_PATCHES) and width >= 4 else width
    begin = place(width, across) if across < width else 0
    lines = lines.narrow(1 - dim, begin, across)
    first = place(count, run)
    ordinary, others = (lines.narrow(dim, at, run) for at in (first, place(count, run, 0)))

    # A short run has one way alone.
    way = torch.arange(run, device=tensor.device) * len(ways) // run + place(len(ways), 1, 0)
    way = torch.tensor(ways, device=tensor.device)[way % len(ways)].unsqueeze(1 - dim)
    scale = 16.0 if facts.narrow_range else 1e3
    below = torch.finfo(tensor.dtype).eps if facts.narrow else 1e-3
    largest = facts.high - below * abs(facts.high) * facts.uniform(ordinary)
    changed = torch.where(way == _REPEATED, others, ordinary)
    changed = torch.where(way == _LARGEST, largest, changed)
    changed = torch.where(way == _SMALL, ordinary / scale, changed)
    changed = torch.where(way == _LARGE, ordinary * scale, changed)
    changed = changed.clamp(torch.finfo(tensor.dtype).min, torch.finfo(tensor.dtype).max)

    def there(whole):
        rows = whole.view(-1, tensor.shape[-1])
        return rows.narrow(1 - dim, begin, across).narrow(dim, first, run)

    if facts.kept is not None:
        changed = torch.where(there(facts.kept), ordinary, changed)
    result = tensor.clone(memory_format=torch.contiguous_format)
    there(result).copy_(changed)
    return result


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


_SHORT_INTEGERS = (torch.int8, torch.uint8, torch.int16)


def _at_ends(tensor, generators):
    """Returns short integers at the ends of their range, most at the upper one, so that sums are as
    large as they can be: an accumulator that is too narrow overflows. Equal values stay equal; many
    zeros stay zeros.
    """
    low, high = (end.item() for end in torch.aminmax(tensor))
    if high - low < 2 or is_sorted(tensor):
        return tensor
    on_device = {"device": tensor.device}
    levels = torch.full((high - low + 1,), high, dtype=tensor.dtype, **on_device)
    share = torch.rand(levels.shape, generator=generators.on(tensor.device), **on_device)
    levels[share < 1 / 8] = low
    zeros = tensor.numel() - torch.count_nonzero(tensor).item()
    if zeros >= _ZERO_SHARE * tensor.numel():
        levels[-low] = 0
    return values.by_pieces(lambda part: levels[part.long() - low], tensor.dtype, tensor)


class Generators:
    """One generator for each device that holds tensors, all with the same seed."""

    def __init__(self, seed):
        self.seed = seed
        self._by_device = {}

    def on(self, device):
        if device not in self._by_device:
            self._by_device[device] = torch.Generator(device).manual_seed(self.seed)
        return self._by_device[device]


def may_change(tensor):
    """Returns True if a kind of draw may change a tensor's values."""
    if tensor.numel() == 0 or tensor.dtype in _SHORT_INTEGERS:
        return tensor.numel() > 0
    return tensor.dtype.is_floating_point and not Facts(tensor.detach()).is_structure


def change(tensor, kind, generators):
    """Returns the tensor changed by this kind of draw: a new tensor, or the same one if nothing may
    change.
    """
    if kind == ORDINARY or tensor.numel() == 0:
        return tensor
    if kind == ZERO_ONE and tensor.dtype in _SHORT_INTEGERS:
        return _at_ends(tensor, generators)
    if not tensor.dtype.is_floating_point:
        return tensor
    facts = Facts(tensor)
    if facts.is_structure:
        return tensor
    if kind == SPECIAL_VALUES:
        return _special_values(facts, generators).to(tensor.dtype)
    if kind == PATCH:
        related = is_sorted(facts.values) or summing_to_one(facts) is not None
        return tensor if related else _patched(facts, tensor, generators)
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
    made = values.by_pieces(changed, tensor.dtype, *facts.with_kept(), row=row)
    return _with_one_that_dominates(facts, made, generators) if kind == OUTLIER else made


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
    nudged = [
        (name, _nudged(value, size, generators) if isinstance(value, torch.Tensor) else value)
        for name, value in leaves
    ]
    return sharing.keep(leaves, nudged)


def change_all(leaves, kind, seed):
    """Applies a kind to (name, value) leaves; returns them and how many tensors changed."""
    generators = Generators((seed * 31 + kind) & (2**63 - 1))
    result = []
    changed = 0
    for name, value in leaves:
        if isinstance(value, torch.Tensor):
            ordinary = value.detach()
            value = change(ordinary, kind, generators)
            changed += value is not ordinary
        result.append((name, value))
    return sharing.keep(leaves, result), changed
