"""Inputs that forward changes in place: what they hold after the call is output, as results are.

The owners of the bytes, in time:
  oracle  forward gets copies of a master's inputs. The changed ones go to the outputs, after the
          results.
  judge   lays the value of each changed input among the outputs of its slot before a block, where
          other outputs get poison, and compares it with the oracle's after the block.
  host    forward gets the tensor among the outputs, and changes it there. Each call of a block has
          a slot of its own, so nothing is put back between calls, and nothing within the clock.
"""

import torch

from assay_host import failure, values
from assay_host.failure import Failure


class Changes:
    """Which inputs forward changes. `inputs`: numbers of the leaves. `same`: the leaf's number by
    the number of a result that is this leaf itself, and so no output of its own.
    """

    def __init__(self, inputs=(), same=None):
        self.inputs = list(inputs)
        self.same = dict(same or {})

    def outputs(self, results, leaves):
        """Returns the outputs of a call: its results, then the changed ones of its leaves."""
        kept = [result for number, result in enumerate(results) if number not in self.same]
        return kept + [leaves[number] for number in self.inputs]


def observed(call, leaves, given):
    """Calls `call(given)`. Returns its Changes and what it returned, a list of tensors. `leaves`:
    (name, value) of the values that `given` has copies of. Raises Failure for a change that no slot
    can show.
    """
    tensors = [number for number, value in enumerate(given) if isinstance(value, torch.Tensor)]
    # The version counts changes in place, those that leave the values as they are, too.
    before = {number: (given[number]._version, given[number].data_ptr()) for number in tensors}
    results = call(given)
    changed = []
    for number in tensors:
        (name, old), new = leaves[number], given[number]
        if new.shape != old.shape or new.dtype != old.dtype:
            raise Failure(
                failure.PROBLEM_FORWARD,
                f"forward changes the shape or the type of its input {name} in place: write "
                "`x = x.squeeze()` in the place of `x.squeeze_()`",
            )
        version, address = before[number]
        if new._version == version and values.same_bytes(old, new):
            continue
        if new.data_ptr() != address:
            raise Failure(
                failure.PROBLEM_FORWARD,
                f"forward puts another tensor into its input {name} (`x.data = ...`): write "
                "`x.copy_(...)`",
            )
        changed.append(number)
    same = {
        number: leaf
        for number, result in enumerate(results)
        for leaf in changed
        if is_same(result, given[leaf])
    }
    return Changes(changed, same), results


def is_same(tensor, other):
    """Returns True if both are the same elements of memory."""
    return (
        tensor.numel() > 0
        and tensor.data_ptr() == other.data_ptr()
        and tensor.dtype == other.dtype
        and tensor.shape == other.shape
        and tensor.stride() == other.stride()
    )


def changed_bytes(before, after):
    """Returns the bytes of the elements that differ, bit for bit."""
    return after.element_size() * sum(
        int((values.as_bytes(left.to(right.device)) != values.as_bytes(right)).any(1).sum())
        for left, right in values.in_pieces(before, after)
    )
