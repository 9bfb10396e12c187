"""A module's weights: their values, and which of them the judge may change.

Fresh weights are often all ones or all zeros, and a kernel that ignores them passes; such
parameters get random values. A kernel could also repack weights once, outside of the clock. So each
call has weights of its own, in which the judge changes some elements (copies.py).
"""

import collections
import math
import typing

import torch

from assay_host import values

# How the problem wants its weights treated ("weights" in the settings).
VARIED, CONSTANT, CONSTRUCTED = "varied", "constant", "constructed"

_RUNNING = ("running_mean", "running_var")
# A constant below the one is faint, and gets values about the other.
_FAINT, _ORDINARY = 0.01, 0.25
_HARDLY_TRAINED = 1e-4  # an adapter's weights, for example

# How a candidate's weights were matched with the reference's. BY_SEED: none were, and it has those
# that its constructor made under the reference's seed.
BY_NAME, BY_ORDER, BY_SEED, NO_WEIGHTS, BY_SHAPE = range(5)


def has_lazy(model):
    """Returns True if some parameters get their shapes only in the first call of forward."""
    tensors = model.state_dict(keep_vars=True).values()
    return any(torch.nn.parameter.is_lazy(tensor) for tensor in tensors)


def state_tensors(model):
    """Returns the tensors of a module's state_dict by name, tied ones under each of their names."""
    return {
        name: tensor
        for name, tensor in model.state_dict(keep_vars=True).items()
        if isinstance(tensor, torch.Tensor)
    }


def every_tensor(model):
    """Returns every tensor of a module by name: its state_dict, then buffers that are not part of
    it.
    """
    tensors = {
        name: tensor
        for name, tensor in model.state_dict(keep_vars=True).items()
        if isinstance(tensor, torch.Tensor)
    }
    for name, tensor in model.named_buffers():
        tensors.setdefault(name, tensor)
    return {name: tensor.detach() for name, tensor in tensors.items()}


class Saved:
    """A module's tensors as they are now, by name."""

    def __init__(self, model):
        now = every_tensor(model)
        self.tensors = {name: tensor.clone() for name, tensor in now.items()}
        self._parameters = {name for name, _ in model.named_parameters()}
        self._versions = {name: tensor._version for name, tensor in now.items()}

    def changed(self, state):
        """Returns the names of those that differ in `state`, every_tensor() of later, and of
        buffers that were written, if only with what they held: the least value of many relus stays
        zero. Parameters that were stay parameters that vary.
        """
        return [
            name
            for name, tensor in self.tensors.items()
            if not values.same_bytes(tensor, state[name])
            or name not in self._parameters
            and state[name]._version != self._versions[name]
        ]


class Restorer:
    """Puts back the tensors of modules that forward changes."""

    def __init__(self, model, names):
        self._names = names
        self._pairs = []
        self.add(model)

    def add(self, model):
        """Adds a module of the same kind."""
        tensors = every_tensor(model)
        self._pairs += [(tensors[name], tensors[name].clone()) for name in self._names]

    def tensors(self):
        return [tensor for tensor, _ in self._pairs]

    def restore(self):
        for tensor, saved in self._pairs:
            tensor.copy_(saved)


def randomise_constant(model, seed):
    """Gives random values to parameters and running statistics whose elements are all equal:
    between 0.5 and 1.5 times the element; within 0.25 of zero for zeros; for elements so small that
    a branch which they scale would hardly show in outputs, between 0.5 and 1.5 times _ORDINARY,
    with the element's sign. Parameters whose elements differ and are all below _HARDLY_TRAINED are
    scaled up to that size. Returns by name what they were: the element, or all.
    """
    drawn = {}
    generator = torch.Generator().manual_seed(seed & (2**63 - 1))
    seen = set()
    for name, tensor in state_tensors(model).items():
        running = name.rpartition(".")[2] in _RUNNING
        if not (isinstance(tensor, torch.nn.Parameter) or running):
            continue
        if not tensor.dtype.is_floating_point or tensor.numel() == 0 or id(tensor) in seen:
            continue
        seen.add(id(tensor))
        data = tensor.detach()
        value = data.flatten()[0].item()
        if value != value or abs(value) == float("inf"):
            continue
        if not bool((data == value).all()):
            if running or torch.finfo(data.dtype).bits == 8:
                continue
            largest = max(abs(end.item()) for end in torch.aminmax(data))
            if 0 < largest < _HARDLY_TRAINED:
                drawn[name] = data.clone()
                data.mul_(2.0 ** math.floor(math.log2(_ORDINARY / largest)))
            continue
        share = torch.rand(data.shape, generator=generator, dtype=torch.float32) - 0.5
        if 0 < abs(value) < _FAINT:
            data.copy_(math.copysign(_ORDINARY, value) * (1 + share))
        else:
            data.copy_(value * (1 + share) if value != 0 else 0.5 * share)
        drawn[name] = value
    return drawn


def varies(name, tensor, changed_names, device):
    """Returns True if the judge may change a tensor of the state from call to call: a
    floating-point or complex parameter on the module's device that forward itself does not change.
    """
    has_fractions = tensor.dtype.is_floating_point or tensor.is_complex()
    is_parameter = isinstance(tensor, torch.nn.Parameter) and has_fractions
    return is_parameter and tensor.device.type == device and name not in changed_names


class Match(typing.NamedTuple):
    """Which tensors of a candidate stand for the reference's."""

    how: int
    names: list  # the candidate's, one for each of the reference's; None where it has none
    left_over: int  # tensors of the candidate that stand for none

    def tensors(self, state):
        return [None if name is None else state[name] for name in self.names]

    def missing(self):
        """Returns the indices of the reference's tensors that the candidate has not."""
        return [index for index, name in enumerate(self.names) if name is None]


def match(state, names, views):
    """Matches a candidate's state with the reference's weights, of which `views` hold the values
    that its constructor made. Names decide wherever any is the same; then shapes must agree, too.
    Where none is, the order decides if all shapes agree in it, else the shapes if none is there
    twice.
    """
    if not views:
        return Match(NO_WEIGHTS, [], len(state))
    if set(names) & set(state):
        found = [
            name if name in state and _fits(state[name], view) else None
            for name, view in zip(names, views)
        ]
        if any(found):
            return Match(BY_NAME, found, len(state) - sum(name is not None for name in found))
    elif [tensor.shape for tensor in state.values()] == [view.shape for view in views]:
        return Match(BY_ORDER, list(state), 0)
    else:
        counts = collections.Counter(tensor.shape for tensor in state.values())
        wanted = collections.Counter(view.shape for view in views)
        if all(counts[shape] == number == 1 for shape, number in wanted.items()):
            by_shape = {tensor.shape: name for name, tensor in state.items()}
            found = [by_shape[view.shape] for view in views]
            return Match(BY_SHAPE, found, len(state) - len(found))
    return Match(BY_SEED, [None] * len(names), len(state))


def _fits(tensor, view):
    """Returns True if a tensor may hold a weight: it has its shape, and is not its transpose."""
    if tensor.shape != view.shape:
        return False
    own = tensor.detach()
    may_be_transposed = (
        view.dim() == 2
        and view.shape[0] == view.shape[1]
        and own.dtype == view.dtype
        and own.device == view.device
    )
    return not (may_be_transposed and torch.equal(own, view.t()) and not torch.equal(own, view))
