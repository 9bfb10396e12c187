"""Turns nested arguments and results into flat leaves and a template that rebuilds them.

A template is made of plain tuples, so that it can be pickled for candidate hosts:
  ("leaf", index) ("constant", value) ("list", [...]) ("tuple", [...]) ("named", class, [...])
  ("dict", [(key, ...)])
"""

import torch


def is_argument(value):
    """Returns True for tensors and numbers, which travel through slots; all other values are
    constants.
    """
    return isinstance(value, (torch.Tensor, bool, int, float))


def flatten(value, name, leaves):
    """Appends (name, value) of each leaf to `leaves`, depth first; returns the template."""
    if is_argument(value):
        leaves.append((name, value))
        return ("leaf", len(leaves) - 1)
    if isinstance(value, (list, tuple)):
        parts = [flatten(item, f"{name}_{index}", leaves) for index, item in enumerate(value)]
        if isinstance(value, list):
            return ("list", parts)
        return ("named", type(value), parts) if hasattr(value, "_fields") else ("tuple", parts)
    if isinstance(value, dict):
        return (
            "dict",
            [(key, flatten(item, f"{name}_{key}", leaves)) for key, item in value.items()],
        )
    return ("constant", value)


def rebuild(template, leaves):
    """Rebuilds the value that flatten() took apart, with other leaves, in fresh containers."""
    kind = template[0]
    if kind == "leaf":
        return leaves[template[1]]
    if kind == "constant":
        return template[1]
    if kind == "list":
        return [rebuild(part, leaves) for part in template[1]]
    if kind == "tuple":
        return tuple(rebuild(part, leaves) for part in template[1])
    if kind == "named":
        return template[1](*(rebuild(part, leaves) for part in template[2]))
    return {key: rebuild(part, leaves) for key, part in template[1]}


def constants(template):
    """Returns every constant of a template."""
    if template[0] == "constant":
        return [template[1]]
    if template[0] in ("list", "tuple", "named"):
        return [found for part in template[-1] for found in constants(part)]
    if template[0] == "dict":
        return [found for _, part in template[1] for found in constants(part)]
    return []


def flatten_outputs(value, leaves):
    """Appends the tensors of a result to `leaves` in order. Numbers become 0-dim tensors; None is
    no output.

    Raises TypeError naming the first type that cannot be judged.
    """
    if isinstance(value, torch.Tensor):
        leaves.append(value)
    elif isinstance(value, (bool, int)):
        leaves.append(
            torch.tensor(value, dtype=torch.bool if isinstance(value, bool) else torch.int64)
        )
    elif isinstance(value, float):
        leaves.append(torch.tensor(value, dtype=torch.float64))
    elif isinstance(value, (list, tuple)):
        for item in value:
            flatten_outputs(item, leaves)
    elif isinstance(value, dict):
        for item in value.values():
            flatten_outputs(item, leaves)
    elif value is not None:
        raise TypeError(type(value).__name__)
    return leaves
