"""Tensors and numbers in shared memory: dtypes, views without copies, slots."""

import ctypes
import struct

import torch

from assay_host import layout, structure, wire

DTYPES = {
    1: torch.float64,
    2: torch.float32,
    3: torch.float16,
    4: torch.bfloat16,
    5: torch.int64,
    6: torch.int32,
    7: torch.int16,
    8: torch.int8,
    9: torch.uint8,
    10: torch.bool,
}
# If this PyTorch has them (2.1 and later).
for _number, _name in ((11, "float8_e4m3fn"), (12, "float8_e5m2")):
    if hasattr(torch, _name):
        DTYPES[_number] = getattr(torch, _name)
FLOAT8 = tuple(DTYPES[number] for number in (11, 12) if number in DTYPES)
DTYPE_NUMBERS = {dtype: number for number, dtype in DTYPES.items()}
DTYPE_NAMES = ", ".join(str(dtype).replace("torch.", "") for dtype in DTYPES.values())

# Elements of a piece: what is computed of a large tensor takes the memory of a few pieces.
PIECE = 2**25

_SCALAR_FORMATS = {wire.INT: "<q", wire.FLOAT: "<d", wire.BOOL: "<q"}


def unsupported(tensor, device="cpu"):
    """Says why a tensor cannot travel through a slot ('complex64', 'a sparse tensor'), or returns
    None. `device`: the module's.
    """
    if tensor.is_quantized:
        return f"a quantised tensor ({tensor.dtype})"
    if getattr(tensor, "is_nested", False):
        return "a nested tensor; its padded form and the lengths can be given instead"
    if tensor.layout != torch.strided:
        return (
            f"a sparse tensor ({tensor.layout}); its indices and values, or its to_dense(), can be "
            "given instead"
        )
    if tensor.is_complex():
        return f"{str(tensor.dtype).replace('torch.', '')}; use torch.view_as_real of it"
    if tensor.dtype not in DTYPE_NUMBERS:
        return f"{str(tensor.dtype).replace('torch.', '')}; supported are {DTYPE_NAMES}"
    if tensor.device.type not in ("cpu", device):
        supported = "the CPU" if device == "cpu" else device
        return f"on {tensor.device}; only {supported} is supported"
    if tensor.dim() > wire.RANK_MAX:
        return f"of {tensor.dim()} dimensions; at most {wire.RANK_MAX} are supported"
    return None


def storage_pointer(tensor):
    """Returns the address of the memory that a tensor and its views share; of one without a storage
    of its own, such as a sparse one, a number that is the object's.
    """
    if tensor.layout != torch.strided or getattr(tensor, "is_nested", False):
        return id(tensor)
    storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()
    return storage.data_ptr()


def dense(tensor):
    """Returns the tensor contiguous, without lazy conjugation or negation, without autograd."""
    tensor = tensor.detach()
    if hasattr(tensor, "resolve_neg"):
        tensor = tensor.resolve_neg()
    return tensor.contiguous()


def in_pieces(*tensors, row=1):
    """Yields the elements of tensors of one shape in order, as tuples of flat, contiguous tensors:
    whole rows of `row` elements, at most PIECE elements or one row. They are views of tensors that
    are contiguous.
    """
    size = row * max(1, PIECE // row)
    return zip(*(dense(tensor).view(-1).split(size) for tensor in tensors))


def by_pieces(function, dtype, *tensors, row=1):
    """Returns what function(*tensors) gives for each piece of the tensors (in_pieces), in their
    shape, contiguous, and in `dtype`.
    """
    result = torch.empty(tensors[0].shape, dtype=dtype, device=tensors[0].device)
    for into, *given in in_pieces(result, *tensors, row=row):
        into.copy_(function(*given))
    return result


def as_bytes(flat):
    """Returns a flat tensor as rows of the bytes of its elements."""
    return flat.view(torch.uint8).view(-1, flat.element_size())


def not_finite(tensors):
    """Returns how many elements of the floating-point tensors are NaN or infinite."""
    return sum(
        int((~torch.isfinite(wide(piece))).sum())
        for tensor in tensors
        if tensor.dtype.is_floating_point
        for (piece,) in in_pieces(tensor)
    )


def view(mapping, dtype, shape, offset):
    """Returns a tensor over a region's bytes, on the region's device; writes go to the region.
    Raises ValueError if it does not lie inside.
    """
    count = 1
    for size in shape:
        count *= size
    size_bytes = count * torch.empty((), dtype=dtype).element_size()
    if count == 0 and not mapping.on_device:
        return torch.empty(shape, dtype=dtype)
    if count > 0 and offset + size_bytes > mapping.size_bytes:
        raise ValueError(
            f"{size_bytes} bytes at {offset} lie outside of a region of {mapping.size_bytes} bytes"
        )
    if mapping.on_device:
        return mapping.part(offset, size_bytes).view(dtype).view(shape)
    return torch.frombuffer(mapping.buffer, dtype=dtype, count=count, offset=offset).view(shape)


def spec_view(mapping, spec, offset):
    return view(mapping, DTYPES[spec.dtype], tuple(spec.shape[: spec.rank]), offset)


def read_scalar(mapping, kind, offset):
    value = struct.unpack_from(_SCALAR_FORMATS[kind], mapping.buffer, offset)[0]
    return bool(value) if kind == wire.BOOL else value


def write_scalar(mapping, kind, offset, value):
    struct.pack_into(_SCALAR_FORMATS[kind], mapping.buffer, offset, value)


def same_bytes(a, b):
    """Compares bit for bit, on any devices: NaN equals itself and -0 differs from 0."""
    return (a.dtype, a.shape) == (b.dtype, b.shape) and all(
        torch.equal(as_bytes(left), as_bytes(right.to(left.device)))
        for left, right in in_pieces(a, b)
    )


def same_but_for_rounding(a, b):
    """Compares up to rounding; integers exactly. NaN equals NaN."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if same_bytes(a, b):
        return True
    if not a.dtype.is_floating_point:
        return False
    scale, differences = 0.0, []
    for piece, other in in_pieces(a, b):
        piece, other = piece.double(), other.double()
        same = (piece == other) | (torch.isnan(piece) & torch.isnan(other))
        differences.append((piece - other).abs().masked_fill_(same, 0).max().item())
        finite = piece.abs().masked_fill_(~torch.isfinite(piece), 0)
        scale = max(scale, finite.max().item())
    bound = min(64 * torch.finfo(a.dtype).eps, 0.02) * scale
    return all(difference <= bound for difference in differences)  # not of a NaN


def wide(tensor):
    """Returns a float8 tensor in float32, since PyTorch does not compute in float8; others as they
    are.
    """
    return tensor.float() if tensor.dtype in FLOAT8 else tensor


def is_floating(spec):
    return spec.kind == wire.TENSOR and DTYPES[spec.dtype].is_floating_point


class Slots:
    """Views of every slot's arguments, made once for a plan and its regions. Raises ValueError for
    a bad plan.
    """

    def __init__(self, plan, regions, template, layouts=None, form=None):
        """`layouts`: those of inputs that are views, by number (layout.py). `form`: of the results
        (structure.form_of).
        """
        specs = [plan.arguments[index] for index in range(plan.argument_count)]
        self.input_specs = [spec for spec in specs if spec.role == wire.INPUT]
        self.output_specs = [spec for spec in specs if spec.role == wire.OUTPUT]
        # Forward's results come first among the outputs, then the inputs that it changes.
        self.result_specs = [spec for spec in self.output_specs if not spec.twin]
        self.count = plan.slot_count
        self._plan = plan
        self._regions = regions
        # Numbers lie apart where the inputs lie on a device.
        self._numbers = regions.get(wire.NUMBERS) or regions.get(wire.INPUTS)
        self._template = template
        self.form = form
        self._layouts = layouts or {}
        self._tensors = {}
        self._outputs = {}

    def _offset(self, slot, stride, spec):
        if slot >= self.count:
            raise ValueError(f"slot {slot} of {self.count}")
        return slot * stride + spec.offset

    def prefault(self, library):
        """Touches all slots, so that no call pays for a first touch."""
        regions = [
            self._regions.get(number) for number in (wire.INPUTS, wire.OUTPUTS, wire.WEIGHTS)
        ]
        addresses = [
            region.address if region is not None and not region.on_device else None
            for region in regions
        ]
        library.prefault(ctypes.addressof(self._plan), *addresses)

    @property
    def on_device(self):
        """Returns True if outputs lie on a device, which writes them in the background."""
        return self._regions[wire.OUTPUTS].on_device

    def input_tensors(self, slot):
        """Returns views of a slot's inputs in order; None for a number."""
        if slot not in self._tensors:
            mapping = self._regions[wire.INPUTS]
            self._tensors[slot] = [
                spec_view(mapping, spec, self._offset(slot, self._plan.input_stride, spec))
                if spec.kind == wire.TENSOR
                else None
                for spec in self.input_specs
            ]
            for number, found in self._layouts.items():
                self._tensors[slot][number] = layout.view(found, self._tensors[slot][number])
        return self._tensors[slot]

    def arguments(self, slot, convert=None):
        """Returns forward()'s positional arguments for a slot; applies `convert` to each tensor."""
        leaves = self.leaves(slot, convert)
        return leaves if self._template is None else structure.rebuild(self._template, leaves)

    def leaves(self, slot, convert=None):
        """Returns the same, flat."""
        leaves = []
        for spec, tensor in zip(self.input_specs, self.input_tensors(slot)):
            if tensor is None:
                offset = self._offset(slot, self._plan.input_stride, spec)
                leaves.append(read_scalar(self._numbers, spec.kind, offset))
            else:
                leaves.append(convert(tensor) if convert else tensor)
        return leaves

    def changed_inputs(self, slot):
        """Returns the tensors that forward changes by their numbers among the inputs: those among
        the slot's outputs, where the judge has laid their values (inplace.py).
        """
        first = self._plan.argument_count - len(self.output_specs)
        return {
            number: self.outputs(slot)[spec.twin - 1 - first]
            for number, spec in enumerate(self.input_specs)
            if spec.twin
        }

    def given(self, slot):
        """Returns forward()'s positional arguments in a host under test."""
        leaves = self.leaves(slot)
        for number, tensor in self.changed_inputs(slot).items():
            leaves[number] = tensor
        return leaves if self._template is None else structure.rebuild(self._template, leaves)

    def numbers(self):
        """Returns the object that finds slots with changed scalar arguments; None if the problem
        has none.
        """
        offsets = [spec.offset for spec in self.input_specs if spec.kind != wire.TENSOR]
        if not offsets or self.count == 0:
            return None
        return _Numbers(self._numbers, offsets, self._plan.input_stride, self.count)

    def store_inputs(self, slot, leaves):
        for spec, tensor, value in zip(self.input_specs, self.input_tensors(slot), leaves):
            if tensor is None:
                offset = self._offset(slot, self._plan.input_stride, spec)
                write_scalar(self._numbers, spec.kind, offset, value)
            else:
                tensor.copy_(value)

    def outputs(self, slot):
        if slot not in self._outputs:
            mapping = self._regions[wire.OUTPUTS]
            self._outputs[slot] = [
                # No view, or a forward that leaves grad mode on could not be copied into it.
                spec_view(mapping, spec, self._offset(slot, self._plan.output_stride, spec)).data
                for spec in self.output_specs
            ]
        return self._outputs[slot]

    def results(self, slot):
        """Returns those outputs that are results of forward."""
        return self.outputs(slot)[: len(self.result_specs)]

    def outputs_region(self):
        """Returns the addresses of the outputs of all slots."""
        mapping = self._regions[wire.OUTPUTS]
        return range(mapping.address, mapping.address + mapping.size_bytes)

    def results_region(self):
        """Returns the device memory that the judge lends for results; None without."""
        return self._regions.get(wire.RESULTS)

    def oracle_outputs(self, slot):
        """Returns float64 views; None for integer and bool outputs, which have no finer truth."""
        mapping = self._regions[wire.ORACLE]
        views = []
        for spec in self.output_specs:
            offset = slot * self._plan.oracle_stride + spec.oracle_offset
            views.append(
                view(mapping, torch.float64, tuple(spec.shape[: spec.rank]), offset)
                if is_floating(spec)
                else None
            )
        return views


class _Numbers:
    """The scalar arguments of all slots, read in one strided access: the time counts against the
    host.
    """

    def __init__(self, mapping, offsets, stride, count):
        words = view(mapping, torch.int64, (mapping.size_bytes // 8,), 0)
        self._columns = [words[offset // 8 :][:: stride // 8][:count] for offset in offsets]
        self._seen = [column.clone() for column in self._columns]

    def changed_slots(self):
        changed = set()
        for column, seen in zip(self._columns, self._seen):
            if not torch.equal(column, seen):
                changed.update(torch.nonzero(column != seen).flatten().tolist())
                seen.copy_(column)
        return changed


def parameter_views(plan, mapping, slot=0, places=None, complexes=()):
    """Returns views of a slot's weights, in state_dict order. places: the indices of those that are
    wanted, in that order; None: all. complexes: the indices of those that are complex.
    """
    begin = slot * plan.weights_stride
    specs = [plan.arguments[index] for index in range(plan.argument_count)]
    weights = [spec for spec in specs if spec.role == wire.PARAMETER]
    found = []
    for index in range(len(weights)) if places is None else places:
        parts = spec_view(mapping, weights[index], begin + weights[index].offset)
        found.append(torch.view_as_complex(parts) if index in complexes else parts)
    return found
