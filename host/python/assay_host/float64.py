"""Running a model in float64 without a second model.

The model's own tensors are exchanged for float64 ones while forward runs. A deep copy does not
suffice: closures from the constructor (self.f = lambda x: layer(x)) keep calling the original.

cuDNN's convolutions in float64 take up to twelve times as long as PyTorch's own, 2.8 s for one of
34 ms in float32 (bench/results/h200/float64_convolutions.jsonl), and the oracle runs fourteen of
them. So they run without it, but for recurrent layers, of which PyTorch launches each step, and
where memory is short: PyTorch's own take up to three times as much.
"""

import contextlib

import torch

from assay_host import failure, pieces
from assay_host.failure import Failure


try:
    from torch.overrides import TorchFunctionMode
except ImportError:  # PyTorch before 1.13
    TorchFunctionMode = contextlib.nullcontext


# Functions whose numbers under one seed differ by the type that they are drawn in.
_DRAWN = {torch.rand, torch.randn, torch.rand_like, torch.randn_like, torch.normal, torch.bernoulli}
_DRAWN_INTO = {
    getattr(torch.Tensor, f"{name}_")
    for name in ("uniform", "normal", "log_normal", "cauchy", "exponential", "geometric")
}


def _drawn_in_float32(function, args, kwargs):
    """What the function draws where the model runs as it stands, in float64."""

    def single(item):
        wide = isinstance(item, torch.Tensor) and item.dtype is torch.float64
        return item.float() if wide else torch.float32 if item is torch.float64 else item

    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        drawn = function(*map(single, args), **{name: single(kwargs[name]) for name in kwargs})
    finally:
        torch.set_default_dtype(default)
    if function in _DRAWN_INTO:
        return args[0].copy_(drawn)
    return drawn.double() if drawn.dtype is torch.float32 else drawn


class _NoFloat32(TorchFunctionMode):
    """Where forward asks for float32, as in softmax(x.float()), it computes in float64; random
    numbers that it draws under a seed of its own are those of float32.
    """

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function in _DRAWN or function in _DRAWN_INTO:
            return _drawn_in_float32(function, args, kwargs or {})
        if function is torch.Tensor.float:
            function = torch.Tensor.double
        wide = [torch.float64 if item is torch.float32 else item for item in args]
        named = {
            name: torch.float64 if item is torch.float32 else item
            for name, item in (kwargs or {}).items()
        }
        return function(*wide, **named)


def _has_double(tensor):
    return tensor.dtype.is_floating_point or tensor.is_complex()


def _double(tensor):
    return tensor.to(torch.complex128) if tensor.is_complex() else tensor.double()


class DoubleTensors:
    """float64 versions of a model's floating-point and complex parameters, buffers and plain tensor
    attributes, made from their present values.
    """

    def __init__(self, model, changing):
        """`changing`: the tensors that forward changes; each run starts from their first values."""
        tensors = list(model.parameters()) + list(model.buffers())
        self._exchanged = [
            (tensor, tensor.data, _double(tensor.data))
            for tensor in tensors
            if _has_double(tensor)
        ]
        self._recurs = any(isinstance(each, torch.nn.RNNBase) for each in model.modules())
        pointers = {tensor.data_ptr() for tensor in changing}
        self._changing = [
            (double, double.clone())
            for _, single, double in self._exchanged
            if single.data_ptr() in pointers
        ]
        self._attributes = [
            (module, name, value, _double(value))
            for module in model.modules()
            for name, value in vars(module).items()
            if isinstance(value, torch.Tensor) and _has_double(value)
        ]

    def refresh(self):
        """Takes over the present values of the tensors, after the judge changed them."""
        for tensor, _, double in self._exchanged:
            double.copy_(tensor.data)

    @contextlib.contextmanager
    def in_place(self, saves_memory=False):
        """Makes the model a float64 model within the context; new tensors are float64 by default,
        too. `saves_memory`: with cuDNN, whatever the time.
        """
        default, cudnn = torch.get_default_dtype(), torch.backends.cudnn.enabled
        for double, first in self._changing:
            double.copy_(first)
        torch.set_default_dtype(torch.float64)
        torch.backends.cudnn.enabled = cudnn and (saves_memory or self._recurs)
        try:
            for tensor, _, double in self._exchanged:
                tensor.grad = None  # of an earlier call, in float32
                tensor.data = double
            for module, name, _, double in self._attributes:
                module.__dict__[name] = double
            with _NoFloat32():
                yield
        finally:
            torch.set_default_dtype(default)
            torch.backends.cudnn.enabled = cudnn
            for tensor, single, _ in self._exchanged:
                tensor.grad = None
                tensor.data = single
            for module, name, single, _ in self._attributes:
                module.__dict__[name] = single


class Float64:
    """A reference's forward in float64, whole or by pieces of its batch (pieces.py)."""

    def __init__(self, reference):
        self._reference = reference
        self.forget()

    def forget(self):
        """As before a problem is loaded."""
        self.works = False
        self._doubles = self._pieces = None

    def forget_tensors(self):
        """The model's tensors lie elsewhere from now on."""
        self._doubles = None

    def refresh(self):
        """The judge has changed the weights."""
        if self._doubles is not None:
            self._doubles.refresh()

    def learn(self, leaves, outputs, may_be_whole):
        """Finds out whether forward runs in float64, and how. `leaves`, (name, value), and
        `outputs`: of a first call; None: nobody asks for it. `may_be_whole`: bytes of both that are
        evaluated whole.
        """
        self.forget()
        if leaves is None:
            return
        leaves = [value for _, value in leaves]
        reference = self._reference
        # A state that forward changes would go on from piece to piece.
        if not reference.changed_state():
            self._pieces = pieces.find(
                leaves, outputs, reference.run_anew, self._forward, may_be_whole
            )
        try:
            self.works = self._pieces is not None or bool(self._forward(leaves))
        except Failure:
            self.works = False

    def piece_count(self):
        """Returns the number of pieces; 0 where all rows are evaluated at once."""
        return len(self._pieces.ranges()) if self._pieces is not None else 0

    def parts(self, leaves):
        """Yields the rows of a part (Ellipsis: all) with forward's outputs for them in float64
        (integer ones as they are). Raises Failure(kFloat64Unsupported).
        """
        if self._pieces is None:
            yield ..., self._forward(leaves)
            return
        for rows in self._pieces.ranges():
            yield rows, self._forward(self._pieces.cut(leaves, rows))

    def whole(self, leaves):
        """Returns the outputs of all rows."""
        parts = [outputs for _, outputs in self.parts(leaves)]
        return parts[0] if len(parts) == 1 else [torch.cat(part) for part in zip(*parts)]

    def _run(self, leaves, saves_memory=False):
        try:
            outputs, self._doubles = self._reference.in_double_tensors(
                self._doubles, leaves, saves_memory
            )
            return outputs
        except Failure as error:
            if saves_memory or not isinstance(error.__cause__, torch.cuda.OutOfMemoryError):
                raise
        torch.cuda.empty_cache()
        return self._run(leaves, True)

    def _forward(self, leaves):
        try:
            outputs = self._run(leaves)
        except Exception as error:
            raise Failure(
                failure.FLOAT64_UNSUPPORTED,
                "the reference does not run in float64: "
                f"{getattr(error, 'message', None) or failure.describe_exception(error)}",
            ) from error
        for tensor in outputs:
            if tensor.dtype.is_floating_point and tensor.dtype != torch.float64:
                name = str(tensor.dtype).replace("torch.", "")
                raise Failure(
                    failure.FLOAT64_UNSUPPORTED,
                    f"the reference gives {name} even for float64 inputs",
                )
        return outputs
