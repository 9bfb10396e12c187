"""The state that the reference's forward changes in its module: running statistics, counters.

Request:
  kState  args: slot; carries a writable memfd
          reference: calls forward on that slot's inputs from the constructed state
          [bytes of JSON at the start of the memfd: [{"name", "dtype", "shape", "offset"}] of
          the tensors that lie behind it, how many did not fit]
          candidate: gets the offsets in that JSON, and tells what its last call with the slot's
          module left [one bit for each of these tensors that the module has, alike in size]
"""

import json
import os

import torch

from assay_host import values, weights, wire

# Offset of the first tensor, behind the descriptions; and how many tensors there may be.
_FIRST_OFFSET = 64 * 1024
_TENSORS_MAX = 64


class State:
    """The reference's part."""

    def __init__(self, reference):
        self._reference = reference

    def handlers(self):
        return {wire.STATE: self._tell}

    def _tell(self, args, fd):
        self._reference.run_anew(self._reference.slots().leaves(args[0]))
        room = os.fstat(fd).st_size
        told, offset, left_out = [], _FIRST_OFFSET, 0
        for name, tensor in self._reference.changed_state().items():
            size_bytes = tensor.numel() * tensor.element_size()
            fits = len(told) < _TENSORS_MAX and offset + size_bytes <= room
            if not fits or values.unsupported(tensor, tensor.device.type) is not None:
                left_out += 1
                continue
            _write(fd, tensor, offset)
            number, shape = values.DTYPE_NUMBERS[tensor.dtype], list(tensor.shape)
            told.append({"name": name, "dtype": number, "shape": shape, "offset": offset})
            offset += size_bytes
        return wire.write_text(fd, json.dumps(told)), left_out


def tell(module, size_bytes, fd):
    """Writes the tensors of a candidate's module that the JSON in the memfd, of this size, names.
    Returns their bits.
    """
    held = weights.every_tensor(module) if hasattr(module, "state_dict") else {}
    bits = 0
    for number, one in enumerate(json.loads(os.pread(fd, size_bytes, 0))):
        tensor = held.get(one["name"])
        if tensor is None or tensor.dtype != values.DTYPES[one["dtype"]]:
            continue
        if list(tensor.shape) == one["shape"]:
            _write(fd, tensor, one["offset"])
            bits |= 1 << number
    return bits


def _write(fd, tensor, offset):
    data = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
    os.pwrite(fd, data.numpy().tobytes(), offset)
