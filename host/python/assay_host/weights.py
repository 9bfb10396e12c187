"""A module's weights: their values, and which of them the judge may change.

Fresh weights are often all ones or all zeros, and a kernel that ignores them passes; such
parameters get random values. A kernel could also repack weights once, outside of the clock. So each
call has weights of its own, in which the judge changes some elements (copies.py).
"""

import torch

# How the problem wants its weights treated ("weights" in the settings).
VARIED, CONSTANT, CONSTRUCTED = "varied", "constant", "constructed"

_RUNNING = ("running_mean", "running_var")


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
    between 0.5 and 1.5 times the element if it is not zero, otherwise within 0.25 of zero.
    """
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
        if value != value or abs(value) == float("inf") or not bool((data == value).all()):
            continue
        share = torch.rand(data.shape, generator=generator, dtype=torch.float32) - 0.5
        data.copy_(value * (1 + share) if value != 0 else 0.5 * share)


def varies(name, tensor, changed_names, device):
    """Returns True if the judge may change a tensor of the state from call to call: a
    floating-point parameter on the module's device that forward itself does not change.
    """
    is_parameter = isinstance(tensor, torch.nn.Parameter) and tensor.dtype.is_floating_point
    return is_parameter and tensor.device.type == device and name not in changed_names
