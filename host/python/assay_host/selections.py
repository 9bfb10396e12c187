"""Integer outputs that are the indices of a selection (argmax, topk, sort, max pooling): several
indices may be right there, as equal values may come in any order. So the judge compares the values
that they select.

  kSelect  args: slot, number of the output; carries a writable memfd that begins with a
           candidate's indices, as an output holds them
           [1 if the output is such indices, dtype of the values, 1 if they must be equal, first
           element whose index does not stand for one, indices out of range or of their window,
           indices that stand twice along the axis, 1 if float64 ran, 1 if there are windows]
The memfd then holds one value for each index: those that the candidate selects and those that the
reference selects, both in that dtype, and those that float64 selects. In the place of an index that
stands for no element, the first array has NaN, or the smallest integer.
"""

import ctypes
import os

import torch

from assay_host import failure, operators, values, wire
from assay_host.failure import Failure

# Operators with (values, indices), and those that give indices alone. A stable sort has one right
# order, and is none of them.
_PAIRS = frozenset(("topk", "sort", "max", "min", "kthvalue", "median", "nanmedian", "mode"))
_ALONE = frozenset(("argmax", "argmin", "argsort"))
# Pooling gives such a pair, too. How many axes it has, whose flat elements the indices count.
_POOLS = {
    "max_pool2d_with_indices": 2,
    "max_pool3d_with_indices": 3,
    "adaptive_max_pool2d": 2,
    "adaptive_max_pool3d": 3,
}


class Selection:
    """A call of such an operator: what it selected from, along which axis, and the indices.
    `windows`: of pooling, see _windows().
    """

    def __init__(self, source, dim, indices, windows=None):
        self.whole = dim is None  # of the flat tensor
        self.dim = 0 if self.whole else dim % max(1, source.dim())
        self._source, self._version = source, source._version
        self.indices = indices
        self.windows = windows

    def holds(self):
        """Returns False if forward has changed the source since."""
        return self._source._version == self._version

    @property
    def source(self):
        if self.windows is not None:
            return self._source.flatten(self.dim)
        return self._source.reshape(-1) if self.whole else self._source

    def shaped(self, indices):
        """Returns indices with the axis that a reduction leaves out, as int64."""
        shape = list(self.source.shape)
        count = indices.numel()
        others = 1
        for axis, size in enumerate(shape):
            others *= 1 if axis == self.dim else size
        shape[self.dim : self.dim + 1] = [count // others if others else 0]
        return indices.reshape(shape).long()

    def outside(self, given):
        """Marks those of a candidate's shaped indices that are out of range or of their window."""
        found = (given < 0) | (given >= self.source.shape[self.dim])
        if self.windows is None:
            return found
        outputs = [len(first) for first, _, _ in self.windows]
        rest = given.reshape(*given.shape[: self.dim], *outputs)
        for axis in reversed(range(len(self.windows))):
            size = self._source.shape[self.dim + axis]
            # Along its own axis of the output each window differs.
            first, end, step = self.windows[axis]
            along = [-1] + [1] * (len(self.windows) - 1 - axis)
            first, end = first.view(along), end.view(along)
            at = rest % size
            fits = (at >= first) & (at < end) & ((at - first) % step == 0)
            found |= ~fits.reshape(given.shape)
            rest = torch.div(rest, size, rounding_mode="floor")
        return found

    def gives(self, output):
        """Returns True if the output is these indices: another shape or integer type may do."""
        return output.numel() == self.indices.numel() and torch.equal(
            output.reshape(-1).long(), self.indices.reshape(-1)
        )


def _windows(arguments, axes, indices):
    """Returns the windows of pooling, for each axis: (first element, end, step), first and end for
    each element of the output along it.
    """
    sizes, given = arguments["self"].shape[-axes:], indices.shape[-axes:]

    def each(name, default):
        value = arguments.get(name)
        value = list(value) if isinstance(value, (list, tuple)) else [value]
        value = default if value in ([], [None]) else value
        return value * axes if len(value) == 1 else value

    found = []
    numbers = [torch.arange(count, device=indices.device) for count in given]
    if "kernel_size" not in arguments:  # adaptive
        for size, count, number in zip(sizes, given, numbers):
            ends = [-(-(at + 1) * size // count) for at in range(count)]
            first = torch.div(number * size, max(1, count), rounding_mode="floor")
            found.append((first, torch.tensor(ends, device=indices.device), 1))
        return found
    kernel = each("kernel_size", [1])
    stride, padding = each("stride", kernel), each("padding", [0])
    for axis, step in enumerate(each("dilation", [1])):
        first = numbers[axis] * stride[axis] - padding[axis]
        found.append((first, first + (kernel[axis] - 1) * step + 1, step))
    return found


def _selection(function, args, kwargs, result):
    name = operators.base_name(function)
    arguments = operators.Arguments(function, args, kwargs).named
    source = arguments.get("self", args[0] if args else None)
    if arguments.get("stable") or not isinstance(source, torch.Tensor) or source.dim() == 0:
        return None
    if name in _PAIRS and isinstance(result, (list, tuple)) and len(result) == 2:
        return Selection(source, arguments.get("dim", -1), result[1])
    if name in _POOLS:
        axes = _POOLS[name]
        windows = _windows(dict(arguments, self=source), axes, result[1])
        return Selection(source, source.dim() - axes, result[1], windows)
    if name in _ALONE and isinstance(result, torch.Tensor):
        return Selection(source, arguments.get("dim", None if name != "argsort" else -1), result)
    return None


def _recorder():
    """Returns a dispatch mode that collects the selections that run under it; None if torch has no
    such modes.
    """
    try:
        from torch.utils._python_dispatch import TorchDispatchMode
    except ImportError:
        return None

    class Recorder(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.selections = []

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            found = _selection(function, args, kwargs or {}, result)
            if found is not None:
                self.selections.append(found)
            return result

    return Recorder()


def recorded(forward):
    """Returns forward()'s outputs and the selections that ran in it."""
    recorder = _recorder()
    if recorder is None:
        return forward(), []
    with recorder:
        outputs = forward()
    return outputs, recorder.selections


def find(selections, output):
    """Returns the number of the last selection whose indices the output is; None: it is none."""
    for number in reversed(range(len(selections))):
        if selections[number].holds() and selections[number].gives(output):
            return number
    return None


def _repeated(indices, dim):
    """Marks indices that stand earlier along the axis, too."""
    order = torch.sort(indices, dim=dim, stable=True)
    count = indices.shape[dim]
    again = torch.zeros_like(indices, dtype=torch.bool)
    if count > 1:
        same = order.values.narrow(dim, 1, count - 1) == order.values.narrow(dim, 0, count - 1)
        again.scatter_(dim, order.indices.narrow(dim, 1, count - 1), same)
    return again


def compare(selection, truth, given):
    """Returns the reply's numbers after the first, and the three arrays. `truth`: the same
    selection in float64, or None. `given`: the candidate's indices.
    """
    source, dim = selection.source, selection.dim
    given = selection.shaped(given)
    outside = selection.outside(given)
    # Windows may overlap.
    repeated = (
        torch.zeros_like(outside)
        if selection.windows is not None
        else _repeated(given, dim) & ~outside
    )
    faults = (outside | repeated).reshape(-1)
    fine = source.double() if truth is None else truth.source
    mine, theirs = given.masked_fill(outside, 0), selection.shaped(selection.indices)
    best = theirs if truth is None else truth.shaped(truth.indices)
    nothing = float("nan") if source.dtype.is_floating_point else torch.iinfo(source.dtype).min
    # Where float64 has what the dtype has, nothing was rounded: a selected value is right or wrong.
    exact = not source.dtype.is_floating_point or (truth is not None and _same(source, fine))
    chosen = torch.gather(fine, dim, mine).to(source.dtype)
    chosen.masked_fill_((outside | repeated), nothing)
    arrays = (
        chosen,
        torch.gather(fine, dim, theirs).to(source.dtype),
        torch.gather(fine, dim, best).double(),
    )
    first = int(faults.to(torch.uint8).argmax()) if bool(faults.any()) else 0
    counts = int(outside.sum()), int(repeated.sum())
    number = values.DTYPE_NUMBERS[source.dtype]
    flags = int(truth is not None), int(selection.windows is not None)
    return (number, int(exact), first, *counts, *flags), arrays


def _same(a, b):
    a, b = a.double(), b.double()
    return a.shape == b.shape and bool(((a == b) | (torch.isnan(a) & torch.isnan(b))).all())


class Selections:
    """Answers kSelect for a reference."""

    def __init__(self, reference):
        self._reference = reference

    def handlers(self):
        return {wire.SELECT: self._select}

    def _select(self, args, fd):
        slot, number = args[:2]
        slots = self._reference.slots()
        if number >= len(slots.output_specs):
            raise Failure(failure.ENVIRONMENT, f"output {number} of {len(slots.output_specs)}")
        spec = slots.output_specs[number]
        outputs, selections = recorded(lambda: self._reference.run_anew(slots.leaves(slot)))
        which = find(selections, outputs[number])
        if which is None or selections[which].source.dtype not in values.DTYPE_NUMBERS:
            return (0,)
        selection = selections[which]
        bytes_given = bytearray(os.pread(fd, spec.size_bytes, 0))
        given = torch.frombuffer(bytes_given, dtype=values.DTYPES[spec.dtype])
        numbers, arrays = compare(
            selection,
            self._in_float64(slot, which, selection),
            given.to(selection.source.device),
        )
        offset = 0
        for array in arrays:
            dense = array.contiguous().cpu()
            size = dense.numel() * dense.element_size()
            os.pwrite(fd, ctypes.string_at(dense.data_ptr(), size), offset)
            offset += size
        return (1, *numbers)

    def _in_float64(self, slot, which, selection):
        """Returns the same selection of a run in float64; None if it cannot be had."""
        try:
            _, selections = recorded(lambda: self._reference.in_float64(slot))
        except Failure:
            return None
        if which >= len(selections):
            return None
        truth = selections[which]
        same = truth.holds() and truth.source.shape == selection.source.shape
        return truth if same and truth.dim == selection.dim else None
