"""Parts of a batch, so that float64 need not hold a large problem whole.

A reference may be evaluated by pieces if a range of rows of its inputs gives that range of its
outputs. Nothing says so of a module. It is tried, on the values of the first call: with ranges of
the size that is used later, natively, each must be as the whole is, within the error that the piece
has against float64. What crosses rows by less than that is lost in the native outputs, too.
"""

import dataclasses

import torch

from assay_host.failure import Failure

# Inputs and outputs up to this size are evaluated whole if the judge says nothing.
WHOLE_BYTES = 2**30
_PIECES = 4  # of what may be whole
_ERRORS = 4.0  # of a piece against float64, by which it may differ from the whole


@dataclasses.dataclass(frozen=True)
class Pieces:
    """`sliced`: numbers of the leaves that are cut. `rows`: of the whole, and of a piece."""

    sliced: tuple
    whole_rows: int
    piece_rows: int

    def ranges(self):
        """Returns the pieces as slices of rows, which cover all of them in order."""
        return [
            slice(first, min(first + self.piece_rows, self.whole_rows))
            for first in range(0, self.whole_rows, self.piece_rows)
        ]

    def cut(self, leaves, rows):
        """Returns the leaves of these rows; those that are not cut are shared."""
        return [leaf[rows] if i in self.sliced else leaf for i, leaf in enumerate(leaves)]


def find(leaves, outputs, natively, in_float64, may_be_whole=WHOLE_BYTES):
    """Returns the Pieces of forward; None if inputs and outputs have at most `may_be_whole` bytes,
    or its rows are not independent.

    `leaves`: the inputs of the first call; `outputs`: what forward gave for them. `natively` and
    `in_float64` run forward on other leaves, from the constructed state.
    """
    tensors = [value for value in (*leaves, *outputs) if isinstance(value, torch.Tensor)]
    whole_bytes = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
    counts = {tensor.shape[0] if tensor.dim() else 0 for tensor in outputs}
    if whole_bytes <= may_be_whole or len(counts) != 1:
        return None
    rows = counts.pop()
    piece_rows = max(1, rows * may_be_whole // (_PIECES * whole_bytes))
    if piece_rows >= rows:
        return None
    for sliced in _choices(leaves, rows):
        found = Pieces(sliced, rows, piece_rows)
        ranges = found.ranges()
        # The first one begins as the whole does, and would hide what is special about its rows.
        tried = {part.start: part for part in (ranges[1], ranges[len(ranges) // 2], ranges[-1])}
        if all(
            _is_as_the_whole(found, part, leaves, outputs, natively, in_float64)
            for part in tried.values()
        ):
            return found
    return None


def _choices(leaves, rows):
    """Returns the sets of leaves that may be cut: all with so many rows, or one of them."""
    may_be = [
        i
        for i, leaf in enumerate(leaves)
        if isinstance(leaf, torch.Tensor) and leaf.dim() > 0 and leaf.shape[0] == rows
    ]
    if not may_be:
        return []
    return [tuple(may_be), *((i,) for i in may_be if len(may_be) > 1)]


def _is_as_the_whole(found, part, leaves, outputs, natively, in_float64):
    cut = found.cut(leaves, part)
    try:
        given, truth = natively(cut), in_float64(cut)
    except Failure:
        return False
    return len(given) == len(outputs) and all(
        _is_close(piece, exact, whole[part]) for piece, exact, whole in zip(given, truth, outputs)
    )


def _is_close(piece, truth, whole):
    if piece.shape != whole.shape or piece.dtype != whole.dtype:
        return False
    if not piece.dtype.is_floating_point:
        return torch.equal(piece, whole)
    piece, truth, whole = piece.double(), truth.double(), whole.double()
    finite = torch.isfinite(whole)
    if not torch.equal(finite, torch.isfinite(piece)):
        return False
    zero = torch.zeros((), dtype=torch.float64, device=whole.device)
    piece, truth, whole = (torch.where(finite, value, zero) for value in (piece, truth, whole))
    error = torch.linalg.vector_norm(piece - truth)
    return bool(torch.linalg.vector_norm(piece - whole) <= _ERRORS * error)
