"""Random values for weights that are all equal or faint (weights.randomise_constant), except where
they leave forward without numbers: a drawn exponent gives NaN of negative inputs.
"""

import math

import torch

from assay_host import values
from assay_host.failure import Failure


def settle(tensors, drawn, run):
    """Returns run()'s result, and the names of those tensors that have got back the value that the
    constructor made. `tensors`: a module's by name. `drawn`: of those that have random values,
    the constructed ones: all, or one for all. `run()` calls forward and returns a tuple that begins
    with its outputs. Raises Failure as `run` does.
    """
    result, found = _attempt(run)
    kept = _kept(tensors, drawn, run, found) if drawn and found else []
    if kept:
        result, _ = _attempt(run)
    if isinstance(result, Failure):
        raise result
    return result, kept


def words(kept):
    """Returns what verdicts say about such tensors; empty: there are none."""
    if not kept:
        return ""
    one = len(kept) == 1
    return (
        f"weight{'' if one else 's'} {', '.join(kept)} {'stays' if one else 'stay'} as constructed:"
        " with other values forward gives NaN or infinity, or fails"
    )


def _attempt(run):
    """Returns run()'s result or its Failure, and how many elements of outputs are no numbers."""
    try:
        result = run()
    except Failure as error:
        return error, math.inf
    return result, values.not_finite(result[0])


def _kept(tensors, drawn, run, found):
    """Puts the constructed values back, then draws one tensor after the other again that does no
    harm.
    """
    random = {name: tensors[name].detach().clone() for name in drawn}
    for name, value in drawn.items():
        tensors[name].detach().copy_(torch.as_tensor(value))
    least = _attempt(run)[1]
    kept = []
    for name, value in drawn.items():
        tensors[name].detach().copy_(random[name])
        if least < found and _attempt(run)[1] > least:
            tensors[name].detach().copy_(torch.as_tensor(value))
            kept.append(name)
    return kept
