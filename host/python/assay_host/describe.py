"""The problem's signature as argument specs: names that are C identifiers, shapes, dtypes."""

import inspect
import math
import re

import torch

from assay_host import failure, structure, values, wire
from assay_host.failure import Failure

# Words that a C or C++ candidate cannot use for an argument.
_RESERVED = frozenset(
    """
alignas alignof and asm auto bool break case catch char class concept const constexpr continue
decltype default delete do double else enum explicit export extern false final float for friend
goto if inline int long main mutable namespace new noexcept not nullptr operator or private
protected public register requires restrict return short signed sizeof static struct switch
template this throw true try typedef typeid typename union unsigned using virtual void volatile
while xor assay std NULL
""".split()
)
_NAME_LENGTH_MAX = 100


def output_names(count, gradients=()):
    """Returns out, out1, out2... of so many results; the last ones are gradients of these names."""
    results = [f"out{index}" if index else "out" for index in range(count - len(gradients))]
    return [*results, *gradients]


class Names:
    """Hands out identifiers that are valid in C and unique within the signature."""

    def __init__(self):
        self._taken = set()

    def take(self, text):
        name = re.sub(r"[^0-9A-Za-z_]", "_", text)[:_NAME_LENGTH_MAX]
        if not name or name[0].isdigit():
            name = "_" + name
        if name in _RESERVED:
            name += "_"
        unique, number = name, 2
        while unique in self._taken:
            unique, number = f"{name}_{number}", number + 1
        self._taken.add(unique)
        return unique


def forward_names(forward, count):
    """Returns a name for each of `count` positional arguments, from forward's signature; x0, x1...
    if it has none.
    """
    names = []
    rest = None
    try:
        for parameter in inspect.signature(forward).parameters.values():
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
                names.append(parameter.name)
            elif parameter.kind == parameter.VAR_POSITIONAL:
                rest = parameter.name
    except (TypeError, ValueError):
        pass
    while len(names) < count:
        names.append(f"{rest or 'x'}_{len(names)}" if rest else f"x{len(names)}")
    return names[:count]


class Signature:
    """Collects argument specs, then writes them into a report. `device`: the module's."""

    def __init__(self, device="cpu"):
        self._device = device
        self._names = Names()
        self.rows = []  # (name, role, kind, dtype number, shape, size in bytes)
        self._varies = set()  # indices of rows that the judge may change between calls
        self._twins = {}  # by index of a row: the other's index (inplace.py)
        self._used = {}  # by index of a row: ArgumentSpec.used_bytes

    def add(self, role, name, value, number, varies=False):
        """Adds a tensor or a number; raises Failure(number) for one that a slot cannot hold."""
        if varies:
            self._varies.add(len(self.rows))
        name = self._names.take(name)
        if isinstance(value, torch.Tensor):
            _refuse_unsupported(role, name, value, self._device, number)
            size_bytes = value.numel() * value.element_size()
            row = (
                name,
                role,
                wire.TENSOR,
                values.DTYPE_NUMBERS[value.dtype],
                tuple(value.shape),
                size_bytes,
            )
        else:
            kind = (
                wire.BOOL
                if isinstance(value, bool)
                else wire.INT
                if isinstance(value, int)
                else wire.FLOAT
            )
            if kind == wire.INT and not -(2**63) <= value < 2**63:
                raise Failure(
                    number, f"{_ROLE_NAMES[role]} {name} = {value} does not fit in 64 bits"
                )
            row = (name, role, kind, 0, (), 8)
        self.rows.append(row)
        if len(self.rows) > wire.ARGUMENTS_MAX:
            raise Failure(
                failure.PROBLEM_LOAD,
                f"the problem has more than {wire.ARGUMENTS_MAX} inputs, parameters " "and outputs",
            )

    def add_inputs(self, leaves):
        for name, value in leaves:
            self.add(wire.INPUT, name, value, failure.PROBLEM_INPUTS)

    def add_weights(self, tensors, varies):
        """Adds a module's weights by name. `varies(name, tensor)`: whether the judge may change it.
        Returns the numbers of those that are complex.
        """
        for name, tensor in tensors.items():
            value = structure.real(tensor.detach())
            self.add(wire.PARAMETER, name, value, failure.PROBLEM_LOAD, varies(name, tensor))
        return [number for number, tensor in enumerate(tensors.values()) if tensor.is_complex()]

    def add_outputs(self, outputs, used_bytes, gradients=()):
        """Adds forward's results, then the inputs that it changes. `used_bytes`: of the latter, by
        number of the input, in order. `gradients`: names of the last results, which are gradients.
        """
        count = len(outputs) - len(used_bytes)
        names = output_names(count, gradients)
        for name, tensor in zip(names, outputs[:count]):
            self.add(wire.OUTPUT, name, tensor, failure.PROBLEM_OUTPUT)
        for number, tensor in zip(used_bytes, outputs[count:]):
            self._add_changed(number, tensor, used_bytes[number])

    def lay_out(self, number, memory):
        """Gives input number `number`, a view, the shape of its memory (layout.py)."""
        name, role, kind, dtype, shape, size_bytes = self.rows[number]
        elements, count = math.prod(shape), math.prod(memory)
        self._used[number] = size_bytes
        self.rows[number] = (name, role, kind, dtype, memory, size_bytes // elements * count)

    def _add_changed(self, number, value, used_bytes):
        """Adds the output that holds input number `number` after the call."""
        self.add(wire.OUTPUT, f"{self.rows[number][0]}_after", value, failure.PROBLEM_OUTPUT)
        output = len(self.rows) - 1
        self._twins[number], self._twins[output] = output, number
        self._used[output] = used_bytes

    def of_role(self, role):
        return [row for row in self.rows if row[1] == role]

    def write(self, report):
        for index, (name, role, kind, dtype, shape, size_bytes) in enumerate(self.rows):
            spec = wire.ArgumentSpec(
                name=name.encode(),
                role=role,
                kind=kind,
                dtype=dtype,
                rank=len(shape),
                size_bytes=size_bytes,
                varies=int(index in self._varies),
            )
            spec.shape[: len(shape)] = shape
            spec.twin = self._twins[index] + 1 if index in self._twins else 0
            spec.used_bytes = self._used.get(index, 0)
            report.arguments[index] = spec
        report.argument_count = len(self.rows)


def refuse_unsupported(tensors, device):
    """Raises Failure(kProblemLoad) for a weight that a slot cannot hold: bytes of some cannot even
    be compared.
    """
    for name, tensor in tensors.items():
        value = structure.real(tensor)
        _refuse_unsupported(wire.PARAMETER, name, value, device, failure.PROBLEM_LOAD)


def _refuse_unsupported(role, name, value, device, number):
    reason = values.unsupported(value, device)
    if reason:
        raise Failure(number, f"{_ROLE_NAMES[role]} {name} is {reason}")


_ROLE_NAMES = {wire.INPUT: "input", wire.PARAMETER: "parameter", wire.OUTPUT: "output"}


def check_same(rows, leaves):
    """Raises Failure when another call of get_inputs() gives other kinds, dtypes or shapes than the
    description.
    """
    if len(rows) != len(leaves):
        raise Failure(
            failure.PROBLEM_INPUTS, "get_inputs() gives another number of inputs from call to call"
        )
    for (name, _, kind, dtype, shape, _), (_, value) in zip(rows, leaves):
        if isinstance(value, torch.Tensor):
            same = (
                kind == wire.TENSOR
                and values.DTYPE_NUMBERS.get(value.dtype) == dtype
                and value.shape == shape
            )
        else:
            same = kind == (
                wire.BOOL
                if isinstance(value, bool)
                else wire.INT
                if isinstance(value, int)
                else wire.FLOAT
            )
        if not same:
            raise Failure(
                failure.PROBLEM_INPUTS,
                f"get_inputs() gives other shapes or types from call to call (input {name})",
            )
