"""NaN in the reference's outputs on ordinary values: by design, as in a row that a mask hides
wholly, or a fault.
"""

import ast

import torch

from assay_host import failure, values
from assay_host.failure import Failure

_ASKING = frozenset(
    "isnan isinf isfinite isposinf isneginf nan_to_num nansum nanmean nanmedian nanquantile".split()
)


def are_asked_for(tree):
    """Returns True if forward, in a problem's syntax tree, calls a function that tells NaN or
    infinite elements from others: its results on them are part of what it computes.
    """
    forwards = (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name == "forward"
    )
    calls = (call for each in forwards for call in ast.walk(each) if isinstance(call, ast.Call))
    return any(
        getattr(call.func, "attr", getattr(call.func, "id", None)) in _ASKING for call in calls
    )


class NanOutputs:
    """The outputs in which the reference may give NaN: it does so in float64, too."""

    def __init__(self, outputs):
        """`outputs`: of the first call. The draws of gate 1 compare their NaN with float64's."""
        self._by_design = {index for index, tensor in enumerate(outputs) if _has_nan(tensor)}

    def suspects(self, targets):
        """Returns 0-dim bool tensors, without waiting for a device: true where an output may hold a
        NaN that is none by design.
        """
        # A sum is NaN if an element is, and takes a tenth of the time of a look at each.
        return [
            torch.isnan(values.wide(target).sum())
            for index, target in enumerate(targets)
            if index not in self._by_design and target.dtype.is_floating_point
        ]

    def refuse(self, targets, names, in_float64):
        """Raises Failure(kProblemForward) if an output holds a NaN where float64 has none.
        `in_float64()` returns the outputs in float64, or raises a Failure.
        """
        found = [
            index
            for index, target in enumerate(targets)
            if index not in self._by_design and _has_nan(target)
        ]
        if not found:
            return
        try:
            truth = in_float64()
        except Failure:
            truth = None
        for index in found:
            why = "and does not run in float64"
            if truth is not None:
                own = any(
                    bool((torch.isnan(values.wide(target)) & ~torch.isnan(exact)).any())
                    for target, exact in values.in_pieces(targets[index], truth[index])
                )
                why = "where float64 gives none" if own else None
            if why is not None:
                raise Failure(
                    failure.PROBLEM_FORWARD,
                    "the reference itself gives NaN on its own inputs (output "
                    f"{names[index]}), {why}",
                )
            self._by_design.add(index)


def _has_nan(tensor):
    return tensor.dtype.is_floating_point and any(
        bool(torch.isnan(values.wide(piece)).any()) for (piece,) in values.in_pieces(tensor)
    )
