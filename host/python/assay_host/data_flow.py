"""Which calls of a forward need the results of which: what a kernel saves that leaves one out.

Calls are told apart by their index. A result is known by the memory that it lies in, so views of it
are the same result.
"""

import torch

from assay_host import values

FIRST_OF_ITS_SHAPE = "the first argument of the result's shape"


class DataFlow:
    def __init__(self):
        self._made_by = {}  # the call that wrote last to some memory
        self._needs = {}  # (position of an argument, the call that made it), by call
        self._first_of_its_shape = {}  # position of that argument, by call; None without one
        self._seconds = {}
        self._roots = set()  # calls whose results last

    def add(self, index, arguments, result, in_place, seconds):
        """Adds a call, after all before it. `arguments`: tensors, lists of them, and others."""
        results = _tensors(result)
        needs, first = [], None
        for position, argument in enumerate(arguments):
            for tensor in _tensors(argument):
                if first is None and results and tensor.shape == results[0].shape:
                    first = position
                if (maker := self._made_by.get(values.storage_pointer(tensor))) is not None:
                    needs.append((position, maker))
        given = {values.storage_pointer(t) for item in arguments for t in _tensors(item)}
        self._needs[index], self._seconds[index] = needs, seconds
        self._first_of_its_shape[index] = first
        written = _tensors(arguments[0]) if in_place else []
        for tensor in (*written, *results):
            pointer = values.storage_pointer(tensor)
            if in_place and pointer in given and pointer not in self._made_by:
                self._roots.add(index)  # a buffer, or an input
            if in_place or pointer not in given:
                self._made_by[pointer] = index

    def end(self, outputs):
        """Adds what forward returns, tensors or lists of them."""
        for tensor in _tensors(outputs):
            if (maker := self._made_by.get(values.storage_pointer(tensor))) is not None:
                self._roots.add(maker)

    def saved_share(self, indices, kept):
        """Returns the share of the calls' time that is saved if these calls take none, and only the
        arguments at the positions `kept` are needed for their results; None: all of them.
        """
        left_out = {index: self._kept_positions(index, kept) for index in indices}
        needed, waiting = set(), list(self._roots)
        while waiting:
            call = waiting.pop()
            if call in needed:
                continue
            needed.add(call)
            positions = left_out.get(call)
            for position, maker in self._needs[call]:
                if positions is None or position in positions:
                    waiting.append(maker)
        left = sum(self._seconds[call] for call in needed if call not in left_out)
        total = sum(self._seconds.values())
        return 1 - left / total if total > 0 else 0.0

    def _kept_positions(self, index, kept):
        if kept != FIRST_OF_ITS_SHAPE:
            return kept
        first = self._first_of_its_shape[index]
        return () if first is None else (first,)


def _tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in _tensors(item)]
    return []
