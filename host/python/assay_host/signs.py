"""Random signs: the draw that shows what values of one sign hide.

Where every ordinary value of an input is positive, relu is the identity, and a norm of absolute
values is a mean. So floating-point inputs of one sign, or whose values leave out an interval around
zero, get random signs. An input that the reference needs with its own sign (under a root, a
logarithm) keeps it: float64 gives a NaN or an infinity otherwise, or forward throws. So does an
input that says more than a distribution: a mask, labels, probabilities that sum to one, sorted
values. docs/problems.md says it to authors.

Which inputs these are is decided once, on a draw under the problem's own seed, so that every host
that loads the problem decides alike.
"""

import torch

from assay_host import draws, sharing, values
from assay_host.failure import Failure

# An interval around zero counts as left out if it is this share of the largest magnitude.
_GAP_SHARE = 0.05
# Of fewer elements, chance leaves out an interval.
_ELEMENTS_MIN = 16


class Signs:
    """`draw()`: the (name, value) leaves of an ordinary draw, the same ones each time. `seed`: of
    the signs on which it decides. `truth_of(leaves)` yields parts of forward's outputs, each a
    list of tensors; raises Failure.
    """

    def __init__(self, draw, seed, truth_of):
        self._draw = draw
        self._seed = seed
        self._truth_of = truth_of
        self._scales = None  # of the inputs whose signs change, by number
        self._kept = ()

    def kept(self):
        """Returns the numbers of the inputs that keep their sign because the reference needs it."""
        self._decide()
        return self._kept

    def change_all(self, leaves, seed):
        """Returns (name, value) leaves with random signs, and how many tensors changed."""
        self._decide()
        return self._changed(leaves, seed, self._scales), len(self._scales)

    def _decide(self):
        if self._scales is not None:
            return
        leaves, seed = self._draw(), self._seed
        scales = {
            number: scale
            for number, (_, value) in enumerate(leaves)
            if (scale := _scale_of(value)) is not None
        }
        self._kept = ()
        if scales and not self._bears(leaves, seed, scales):
            bearing = {}
            if len(scales) > 1:
                bearing = {
                    number: scale
                    for number, scale in scales.items()
                    if self._bears(leaves, seed, {number: scale})
                }
                if not self._bears(leaves, seed, bearing):
                    bearing = {}
            self._kept = tuple(number for number in scales if number not in bearing)
            scales = bearing
        self._scales = scales

    def _changed(self, leaves, seed, scales):
        changed = [
            (name, _flipped(value, scales[number], seed + number) if number in scales else value)
            for number, (name, value) in enumerate(leaves)
        ]
        return sharing.keep(leaves, changed)

    def _bears(self, leaves, seed, scales):
        """Returns True if the reference gives as many finite numbers with these signs changed."""
        if not scales:
            return True
        try:
            lost = self._not_finite(self._changed(leaves, seed, scales))
        except Failure:
            return False
        if lost == 0:
            return True
        try:
            return lost <= self._not_finite(leaves)
        except Failure:
            return False

    def _not_finite(self, leaves):
        return sum(map(values.not_finite, self._truth_of(leaves)))


def _scale_of(value):
    """Returns the number by which values are multiplied before their fractions decide on signs;
    None for an input whose signs stay.
    """
    if not isinstance(value, torch.Tensor) or not value.dtype.is_floating_point:
        return None
    if value.numel() == 0:
        return None
    facts = draws.Facts(value.detach())
    if facts.is_structure or not (_is_one_signed(facts) or _leaves_out_zero(facts)):
        return None
    if draws.summing_to_one(facts) is not None or draws.is_sorted(facts.values):
        return None
    return 7919.773 / (facts.deviation or 1.0)


def _is_one_signed(facts):
    return facts.low >= 0 or facts.high <= 0


def _leaves_out_zero(facts):
    if facts.values.numel() < _ELEMENTS_MIN:
        return False
    ends = []
    for (piece,) in values.in_pieces(facts.values):
        magnitudes = piece[torch.isfinite(piece) & (piece != 0)].abs()
        ends += torch.aminmax(magnitudes) if magnitudes.numel() else ()
    return bool(ends) and bool(min(ends) > _GAP_SHARE * max(ends))


def _flipped(tensor, scale, seed):
    """Returns the tensor with the signs of about half of its values changed: equal values alike, so
    that ties stay ties and a symmetric matrix stays symmetric. Zeros, infinities and NaN stay.
    """
    phase = (seed * 0.6180339887498949) % 1.0  # the golden ratio spreads seeds over the phases

    def flipped(piece):
        work = piece if piece.dtype == torch.float64 else piece.to(torch.float32)
        places = work * scale + phase
        flips = (places - torch.floor(places) < 0.5) & torch.isfinite(work) & (work != 0)
        return torch.where(flips, -work, work)

    return values.by_pieces(flipped, tensor.dtype, tensor)
