"""Calls a candidate once in the builder, on a device, so that code of its first call (Triton) is
compiled where there are compilers. Shapes are the problem's; values are made up.
"""

import json

import torch

from assay_host import failure, layout, structure, values, wire

_NUMBERS = {wire.INT: 1, wire.FLOAT: 1.0, wire.BOOL: False}


def read_inputs(path):
    """Reads the judge's description of forward's inputs: a list of {"kind", "dtype", "shape"}."""
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def _made(description, place):
    """Makes a value: floats between 0 and 1; integers are 0, a valid index into anything."""
    if description["kind"] != wire.TENSOR:
        return _NUMBERS[description["kind"]]
    dtype, shape = values.DTYPES[description["dtype"]], description["shape"]
    if dtype.is_floating_point:
        return torch.rand(shape, dtype=torch.float32, device=place).to(dtype)
    return torch.zeros(shape, dtype=dtype, device=place)


def call(model, descriptions, record, place, wait_for_all):
    """Calls the model once with inputs of these descriptions. `record`: the construction record.
    Any exception is the candidate's.
    """
    template = record["template"]
    leaves = [_made(description, place) for description in descriptions]
    for number, found in record["layouts"].items():
        leaves[number] = layout.view(layout.Layout(*found), leaves[number])
    model(*(leaves if template is None else structure.rebuild(template, leaves)))
    wait_for_all()


def explain(error, path):
    return "in the builder, its first call fails: " + failure.explain(error, path)
