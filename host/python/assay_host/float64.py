"""Running a model in float64 without a second model.

The model's own tensors are exchanged for float64 ones while forward runs. A deep copy does not
suffice: closures from the constructor (self.f = lambda x: layer(x)) keep calling the original.
"""

import contextlib

import torch


class DoubleTensors:
    """float64 versions of a model's floating-point parameters, buffers and plain tensor attributes,
    made from their present values.
    """

    def __init__(self, model, changing):
        """`changing`: the tensors that forward changes; each run starts from their first values."""
        tensors = list(model.parameters()) + list(model.buffers())
        self._exchanged = [
            (tensor, tensor.data, tensor.data.double())
            for tensor in tensors
            if tensor.dtype.is_floating_point
        ]
        pointers = {tensor.data_ptr() for tensor in changing}
        self._changing = [
            (double, double.clone())
            for _, single, double in self._exchanged
            if single.data_ptr() in pointers
        ]
        self._attributes = [
            (module, name, value, value.double())
            for module in model.modules()
            for name, value in vars(module).items()
            if isinstance(value, torch.Tensor) and value.dtype.is_floating_point
        ]

    def refresh(self):
        """Takes over the present values of the tensors, after the judge changed them."""
        for tensor, _, double in self._exchanged:
            double.copy_(tensor.data)

    @contextlib.contextmanager
    def in_place(self):
        """Makes the model a float64 model within the context; new tensors are float64 by default,
        too.
        """
        default = torch.get_default_dtype()
        for double, first in self._changing:
            double.copy_(first)
        torch.set_default_dtype(torch.float64)
        try:
            for tensor, _, double in self._exchanged:
                tensor.data = double
            for module, name, _, double in self._attributes:
                module.__dict__[name] = double
            yield
        finally:
            torch.set_default_dtype(default)
            for tensor, single, _ in self._exchanged:
                tensor.data = single
            for module, name, single, _ in self._attributes:
                module.__dict__[name] = single
