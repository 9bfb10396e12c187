"""Turns nested arguments and results into flat leaves and a template that rebuilds them.

A template is made of plain tuples, so that it can be pickled for candidate hosts:
  ("leaf", index) ("complex", index) ("constant", value) ("list", [...]) ("tuple", [...])
  ("named", class, [...]) ("dict", [(key, ...)])
"""

import dataclasses

import torch


def real(tensor):
    """Returns a complex tensor as its real and imaginary parts, a view with a last axis of 2, as
    slots hold it; others as they are.
    """
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def is_argument(value):
    """Returns True for tensors and numbers, which travel through slots; all other values are
    constants.
    """
    return isinstance(value, (torch.Tensor, bool, int, float))


def flatten(value, name, leaves):
    """Appends (name, value) of each leaf to `leaves`, depth first; returns the template. Of a
    complex tensor the leaf is its real and imaginary parts.
    """
    if is_argument(value):
        is_complex = isinstance(value, torch.Tensor) and value.is_complex()
        leaves.append((name, real(value) if is_complex else value))
        return ("complex" if is_complex else "leaf", len(leaves) - 1)
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
    if kind == "complex":
        return torch.view_as_complex(leaves[template[1]])
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


class OutputMismatch(Exception):
    """A result of the wrong count, keys, shape or dtype, or on another device."""


def _opened(value):
    """Returns an instance of a dataclass as a dictionary of its fields; others as they are."""
    if isinstance(value, (type, dict)) or not dataclasses.is_dataclass(value):
        return value
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def form_of(value):
    """Returns where a result of the reference has dictionaries, whose outputs are matched by their
    keys: None, a list of forms, or forms by key. A key of no output counts as missing.
    """
    value = _opened(value)
    if isinstance(value, (list, tuple)):
        forms = [form_of(item) for item in value]
        return forms if any(form is not None for form in forms) else None
    # Other keys might not reach a candidate's host.
    if isinstance(value, dict) and all(type(key) in (str, int) for key in value):
        return {key: form_of(item) for key, item in value.items() if flatten_outputs(item, [])}
    return None


def _items(value, form):
    """Returns the items of a list, a tuple or a dictionary with their forms, in the order of the
    reference's outputs. Raises OutputMismatch.
    """
    if isinstance(value, dict) and isinstance(form, dict):
        if value.keys() != form.keys() or any(item is None for item in value.values()):
            _check_keys(value, form)
        return [(value[key], part) for key, part in form.items()]
    items = list(value.values() if isinstance(value, dict) else value)
    forms = list(form.values() if isinstance(form, dict) else form)
    return list(zip(items, forms if len(forms) == len(items) else [None] * len(items)))


def _check_keys(value, form):
    missing = [key for key in form if value.get(key) is None]
    other = [key for key, item in value.items() if key not in form and flatten_outputs(item, [])]
    if missing or other:
        texts = [
            f"{words} {', '.join(map(repr, keys))}"
            for words, keys in (("lacks", missing), ("has besides", other))
            if keys
        ]
        raise OutputMismatch(
            f"the dictionary that forward returns {' and '.join(texts)}; the reference's has the "
            f"keys {', '.join(map(repr, form))}"
        )


def flatten_outputs(value, leaves, form=None):
    """Appends the tensors of a result to `leaves` in order. Numbers become 0-dim tensors; None is
    no output. `form`: form_of() the reference's result.

    Raises TypeError naming the first type that cannot be judged, OutputMismatch for other keys.
    """
    if isinstance(value, torch.Tensor):
        leaves.append(value)
    elif isinstance(value, (bool, int)):
        leaves.append(
            torch.tensor(value, dtype=torch.bool if isinstance(value, bool) else torch.int64)
        )
    elif isinstance(value, float):
        leaves.append(torch.tensor(value, dtype=torch.float64))
    elif isinstance(value, (list, tuple, dict)) and form is not None:
        for item, part in _items(value, form):
            flatten_outputs(item, leaves, part)
    elif isinstance(value, (list, tuple, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            flatten_outputs(item, leaves)
    elif value is not None:
        fields = _opened(value)
        if fields is value:
            raise TypeError(type(value).__name__)
        flatten_outputs(fields, leaves, form)
    return leaves
