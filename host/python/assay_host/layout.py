"""Inputs that are views, such as x.t(), x[:, ::2] or channels last. A slot holds the memory that a
view looks into, as one contiguous tensor: all sides work on the same bytes. Python hosts get the
view, native candidates the memory.
"""

import typing

import torch

from assay_host import wire

# Memory that a view may look into, in sizes of its elements; beyond it is copied densely.
_GAPS_MAX = 4


class Layout(typing.NamedTuple):
    memory: tuple  # shape of the memory
    shape: tuple  # of the view
    strides: tuple  # of the view, in elements


def of(tensor):
    """Returns the Layout of a view; None for a contiguous tensor, and for a view whose memory is no
    contiguous tensor of at most 8 dimensions (an expanded one), or is mostly gaps.
    """
    if tensor.is_contiguous() or tensor.numel() == 0:
        return None
    axes = [axis for axis in range(tensor.dim()) if tensor.shape[axis] > 1]
    axes.sort(key=tensor.stride, reverse=True)
    memory = [tensor.shape[axes[0]]]
    for outer, inner in zip(axes, axes[1:]):
        stride = tensor.stride(inner)
        if stride == 0 or tensor.stride(outer) % stride:
            return None
        memory.append(tensor.stride(outer) // stride)
        if memory[-1] < tensor.shape[inner]:
            return None
    last = tensor.stride(axes[-1])
    if last != 1:
        memory.append(last)
    if last == 0 or len(memory) > wire.RANK_MAX or _count(memory) > _GAPS_MAX * tensor.numel():
        return None
    return Layout(tuple(memory), tuple(tensor.shape), tuple(tensor.stride()))


def _count(shape):
    count = 1
    for size in shape:
        count *= size
    return count


def view(layout, memory):
    """Returns the view into a tensor of the layout's memory."""
    return memory.as_strided(layout.shape, layout.strides, memory.storage_offset())


def copy(tensor, device, dtype=None):
    """Returns a copy in memory of its own, with the tensor's strides if it has a Layout, else
    contiguous.
    """
    dtype = dtype or tensor.dtype
    found = of(tensor)
    if found is None:
        made = torch.empty(tensor.shape, dtype=dtype, device=device)
    else:
        made = view(found, torch.zeros(found.memory, dtype=dtype, device=device))
    return made.copy_(tensor)


def lay_out(leaves, changed, signature):
    """Gives those inputs that are views the shapes of their memory in the signature. `changed`:
    numbers of the inputs that forward changes. Returns the Layouts by number, and what verdicts say
    about the inputs that are not contiguous.
    """
    layouts, said = {}, []
    for number, (name, value) in enumerate(leaves):
        if not isinstance(value, torch.Tensor) or value.is_contiguous():
            continue
        found = None if number in changed else of(value)
        if found is not None:
            layouts[number] = found
            signature.lay_out(number, found.memory)
        said.append(_words(name, value, found, number in changed))
    return layouts, "; ".join(said)


def _words(name, tensor, found, is_changed):
    given = f"input {name} is {list(tensor.shape)} with strides {list(tensor.stride())}"
    if found is not None:
        return f"{given}: native candidates get its memory, {list(found.memory)}"
    why = ", as forward changes it" if is_changed else ""
    return f"{given}: both sides get it contiguous{why}"
