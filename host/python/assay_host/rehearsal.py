"""Calls a candidate once in the builder, on a device, so that code of its first call (Triton) is
compiled where there are compilers. Shapes are the problem's, and values are like its own.
"""

import json
import math

import torch

from assay_host import failure, layout, structure, values, wire

_NUMBERS = {wire.INT: 1, wire.FLOAT: 1.0, wire.BOOL: False}
# Of larger tensors the reference's host looks at so many elements, and keeps no values.
_ELEMENTS_MAX = 65536


def likeness(value):
    """Describes an input of the problem, so that a builder can make one like it: candidates choose
    kernels by lengths and ranges. Returns ("number", value), ("elements", list) of a small tensor
    of integers, ("range", low, high) of another one, ("floats", mean, deviation, low, high), or
    None of a value that has no likeness.
    """
    if isinstance(value, (bool, int, float)):
        return "number", value
    if not isinstance(value, torch.Tensor) or value.numel() == 0:
        return None
    sample = value.detach().reshape(-1)[:_ELEMENTS_MAX].cpu()
    if value.dtype.is_floating_point:
        sample = sample.to(torch.float64)
        found = [float(sample.mean()), float(sample.std(unbiased=False))]
        found += [float(sample.min()), float(sample.max())]
        return ("floats", *found) if all(map(math.isfinite, found)) else None
    if value.numel() <= _ELEMENTS_MAX:
        return "elements", sample.tolist()
    whole = sample.to(torch.int64)
    return "range", int(whole.min()), int(whole.max())


def read_inputs(path):
    """Reads the judge's description of forward's inputs: a list of {"kind", "dtype", "shape"}."""
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def _made(description, like, place):
    """Makes a value like the problem's; without a likeness floats between 0 and 1, and integers 0,
    a valid index into anything.
    """
    kind, *found = like or (None,)
    if description["kind"] != wire.TENSOR:
        return found[0] if kind == "number" else _NUMBERS[description["kind"]]
    dtype, shape = values.DTYPES[description["dtype"]], description["shape"]
    if kind == "floats":
        mean, deviation, low, high = found
        made = torch.randn(shape, dtype=torch.float32, device=place) * deviation + mean
        return made.clamp(low, high).to(dtype)
    if kind == "elements" and len(found[0]) == math.prod(shape):
        return torch.tensor(found[0], device=place).reshape(shape).to(dtype)
    if kind == "range":
        return torch.randint(found[0], found[1] + 1, shape, device=place).to(dtype)
    if dtype.is_floating_point:
        return torch.rand(shape, dtype=torch.float32, device=place).to(dtype)
    return torch.zeros(shape, dtype=dtype, device=place)


def call(model, descriptions, record, place, wait_for_all):
    """Calls the model once with inputs of these descriptions. `record`: the construction record.
    Any exception is the candidate's.
    """
    template = record["template"]
    likenesses = record["likenesses"]
    leaves = [_made(each, like, place) for each, like in zip(descriptions, likenesses)]
    for number, found in record["layouts"].items():
        leaves[number] = layout.view(layout.Layout(*found), leaves[number])
    model(*(leaves if template is None else structure.rebuild(template, leaves)))
    wait_for_all()


def explain(error, path):
    return "in the builder, its first call fails: " + failure.explain(error, path)
