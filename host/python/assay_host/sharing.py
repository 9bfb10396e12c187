"""Inputs that share elements, such as [a, a.t()]: a change of their values must be one change, or a
candidate that reads one of them alone would be wrong. Each side still gets memory of its own for
each input.
"""

import torch

from assay_host import values


def keep(before, after):
    """Returns the (name, value) leaves `after`, a change of each of `before`, with the elements
    shared that are shared in `before`: of a group the largest leaf decides, and the others have
    what it leaves out. They are then views of one tensor.
    """
    result = list(after)
    for group in _groups(before):
        if any(after[number][1].data_ptr() != before[number][1].data_ptr() for number in group):
            for number, value in _agreed(group, before, after):
                result[number] = (after[number][0], value)
    return result


def unexpanded(value):
    """Returns a tensor without what it repeats by a stride of zero, as expand() makes it; other
    values as they are.
    """
    if isinstance(value, torch.Tensor) and value.layout == torch.strided:
        for dim in range(value.dim()):
            if value.stride(dim) == 0 and value.shape[dim] > 1:
                value = value.narrow(dim, 0, 1)
    return value


def expanded(value, like):
    """Returns unexpanded()'s value in the shape of the tensor that it was made of."""
    return value.expand_as(like) if isinstance(like, torch.Tensor) else value


def _groups(leaves):
    """Returns lists of numbers of leaves that may share elements, the largest leaf first."""
    spans = {}
    for number, (_, value) in enumerate(leaves):
        if isinstance(value, torch.Tensor) and value.layout == torch.strided and value.numel():
            storage = values.storage_pointer(value), value.dtype, value.device
            spans.setdefault(storage, []).append((*_span(value), number))
    groups = []
    for found in spans.values():
        end = -1
        for low, high, number in sorted(found):
            if low > end:
                groups.append([])
            groups[-1].append(number)
            end = max(end, high)
    return [
        sorted(group, key=lambda number: (-leaves[number][1].numel(), number))
        for group in groups
        if len(group) > 1
    ]


def _span(tensor):
    """Returns the places of a tensor's first and last element in its storage."""
    first = tensor.storage_offset()
    sizes = zip(tensor.shape, tensor.stride())
    return first, first + sum((size - 1) * stride for size, stride in sizes)


def _agreed(group, before, after):
    """Yields the number and the value of each leaf of a group, in the order of `group`."""
    spans = [_span(before[number][1]) for number in group]
    first = min(low for low, _ in spans)
    count = max(high for _, high in spans) + 1 - first
    decides = after[group[0]][1]
    memory = torch.zeros(count, dtype=decides.dtype, device=decides.device)
    written = torch.zeros(count, dtype=torch.bool, device=decides.device)
    for number in group:
        own, value = before[number][1], after[number][1].detach()
        # Elements that an expanded axis repeats are written once.
        shape = [1 if stride == 0 else size for size, stride in zip(own.shape, own.stride())]
        value = value[tuple(slice(size) for size in shape)]
        place = shape, own.stride(), own.storage_offset() - first
        mine, done = memory.as_strided(*place), written.as_strided(*place)
        mine.copy_(torch.where(done, mine, value))
        done.fill_(True)
    for number in group:
        own = before[number][1]
        place = own.shape, own.stride(), own.storage_offset() - first
        yield number, memory.as_strided(*place)
