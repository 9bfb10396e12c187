"""A module for each slot, which works on the slot's own weights.

Each call of a block has weights of its own, so each slot needs a module. A copy of a module shares
what no call changes: functions, numbers, tensors that are no parameters. If some attribute cannot
be copied for sure, such as a closure that may hold the original's weights, the module is
constructed anew for each slot.
"""

import enum
import functools
import types
import weakref

import torch

from assay_host import values

_PLAIN = (
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    range,
    slice,
    enum.Enum,
    type,
    types.ModuleType,
    types.BuiltinFunctionType,
    torch.dtype,
    torch.device,
    torch.Size,
    torch.Generator,
    torch.layout,
    torch.memory_format,
)


class Uncopied(Exception):
    """An attribute that cannot be copied for sure."""


class _Copier:
    """Copies one module with other tensors in the place of some, given by identity."""

    def __init__(self, replaced, storages):
        self._made = dict(replaced)
        # Addresses of the storages of replaced tensors: a view of one would stay the original's.
        self._storages = storages

    def copy(self, value):
        if id(value) in self._made:
            return self._made[id(value)]
        if isinstance(value, torch.nn.Module):
            return self._module(value)
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, _PLAIN) or type(value).__module__.partition(".")[0] == "triton":
            return value
        return self._object(value)

    def _keep(self, value, made):
        self._made[id(value)] = made
        return made

    def _module(self, module):
        if isinstance(module, torch.jit.ScriptModule):
            raise Uncopied("a scripted module")
        made = self._keep(module, object.__new__(type(module)))
        for name, value in vars(module).items():
            made.__dict__[name] = self.copy(value)
        return made

    def _tensor(self, tensor):
        if tensor.numel() and values.storage_pointer(tensor) in self._storages:
            raise Uncopied("a view of a parameter")
        return tensor

    def _object(self, value):
        kind = type(value)
        if isinstance(value, dict) and kind.__module__ in ("builtins", "collections"):
            made = self._keep(value, value.copy())
            for key, item in value.items():
                made[key] = self.copy(item)
            return made
        if kind is list:
            made = self._keep(value, [])
            made.extend(self.copy(item) for item in value)
            return made
        if kind in (tuple, set, frozenset):
            return self._keep(value, kind(self.copy(item) for item in value))
        if kind is types.MethodType:
            return types.MethodType(value.__func__, self.copy(value.__self__))
        if kind is types.FunctionType and value.__closure__ is None:
            return value
        if kind is functools.partial:
            arguments = [self.copy(item) for item in value.args]
            keywords = {name: self.copy(item) for name, item in value.keywords.items()}
            return functools.partial(self.copy(value.func), *arguments, **keywords)
        if kind is weakref.ReferenceType and value() is not None:
            return weakref.ref(self.copy(value()))
        raise Uncopied(f"an attribute of type {kind.__module__}.{kind.__qualname__}")


class Copies:
    """Modules by slot. `model`: the original, which blocks never call if it has weights. `tensors`:
    those of its tensors that lie in slots, in the order of `views_of(slot)`, the views of a slot's
    weights. `construct()`: makes the module again, and returns it with its tensors in that order.
    """

    def __init__(self, model, tensors, views_of, construct):
        self._model = model
        self._tensors = tensors
        self._views_of = views_of
        self._construct = construct
        self._storages = {values.storage_pointer(tensor) for tensor in tensors if tensor.numel()}
        self._modules = []

    def forget(self):
        """Forgets all modules: the weights lie elsewhere now."""
        self._modules = []

    def modules(self, count):
        """Returns a module for each of so many slots."""
        if not self._tensors:
            return [self._model] * count
        while len(self._modules) < count:
            self._modules.append(self._made_for(len(self._modules)))
        return self._modules[:count]

    def _made_for(self, slot):
        views = self._views_of(slot)
        replaced = {}
        for tensor, view in zip(self._tensors, views):
            if id(tensor) not in replaced:
                replaced[id(tensor)] = _like(tensor, view)
        try:
            return _Copier(replaced, self._storages).copy(self._model)
        except Uncopied:
            module, tensors = self._construct()
            for tensor, view in zip(tensors, views):
                tensor.data = view
            return module


def _like(tensor, view):
    """Returns the view as what the tensor is: a parameter, or a buffer."""
    if not isinstance(tensor, torch.nn.Parameter):
        return view
    return torch.nn.Parameter(view, requires_grad=tensor.requires_grad)


def places(tensors, names, views, changed_names):
    """Returns the indices of the tensors that can lie in slots: of the view's dtype and device, and
    none that forward changes. `names`, `views`: of the weights, in the order of `tensors`, which
    are None where there is none.
    """
    return [
        index
        for index, (tensor, name, view) in enumerate(zip(tensors, names, views))
        if tensor is not None
        and name not in changed_names
        and tensor.dtype == view.dtype
        and tensor.device == view.device
    ]
