"""Accounts for a forward, operator by operator: calls, arithmetic operations, bytes read and
written.

`Account` is a dispatch mode; everything that runs under it is counted, on tensors with storage and
on fake ones alike. How operations are counted (docs/peak.md has the table):
  products, convolutions, attention   a multiply-add is two
  normalisations, softmax             by the textbook, a few an element
  moving data (views, copies, index)  none
  everything else                     one for each element of the largest tensor involved
"""

import math
import time
import weakref

import torch

_SOFTMAX, _LAYER_NORM = 5, 8  # operations an element


def base_name(function):
    return getattr(getattr(function, "_schema", None), "name", str(function)).split("::")[-1]


def _size_bytes(tensor):
    return tensor.numel() * tensor.element_size()


def _product(left, right):
    """(..., m, k) times (..., k, n): 2 m n k for each product of the batch."""
    return 2 * left.numel() * (right.shape[-1] if right.dim() > 1 else 1)


class Arguments(tuple):
    """A call's arguments in the order of its schema, and by name."""

    def __new__(cls, function, args, kwargs):
        schema = getattr(getattr(function, "_schema", None), "arguments", ())
        named = dict(zip((argument.name for argument in schema), args))
        named.update(kwargs)
        ordered = [named.get(argument.name) for argument in schema] or list(args)
        self = super().__new__(cls, ordered)
        self.named = named
        return self


def _convolution(arguments, output):
    source, weight = arguments[0], arguments[1]
    transposed = len(arguments) > 6 and arguments[6]
    # Each output element (each input element, when transposed) meets one filter of one group.
    meets = source if transposed else output
    bias = output.numel() if len(arguments) > 2 and arguments[2] is not None else 0
    return 2 * meets.numel() * weight.numel() // max(1, weight.shape[0]) + bias


def _attention(arguments, _output):
    query, key, value = arguments[:3]
    scores = query.numel() // max(1, query.shape[-1]) * key.shape[-2]
    causal = arguments.named.get("is_causal") is True
    return scores * (2 * query.shape[-1] + 2 * value.shape[-1] + _SOFTMAX) // (2 if causal else 1)


def _recurrent_layer(arguments, _output):
    source, *weights = [item for item in arguments if isinstance(item, torch.Tensor)]
    steps = source.numel() // max(1, source.shape[-1])
    return sum(2 * steps * weight.numel() for weight in weights if weight.dim() == 2)


def _pooling(arguments, output):
    window = arguments[1]
    return output.numel() * (math.prod(window) if isinstance(window, (list, tuple)) else window)


def _elements(count):
    return lambda arguments, _output: count * arguments[0].numel()


_RULES = {
    "mm": lambda a, _: _product(a[0], a[1]),
    "bmm": lambda a, _: _product(a[0], a[1]),
    "mv": lambda a, _: _product(a[0], a[1]),
    "dot": lambda a, _: _product(a[0], a[1]),
    "vdot": lambda a, _: _product(a[0], a[1]),
    "addmm": lambda a, out: _product(a[1], a[2]) + out.numel(),
    "baddbmm": lambda a, out: _product(a[1], a[2]) + out.numel(),
    "addmv": lambda a, out: _product(a[1], a[2]) + out.numel(),
    "linear": lambda a, out: 2 * a[0].numel() * a[1].shape[0] + out.numel(),
    "convolution": _convolution,
    "_convolution": _convolution,
    "mkldnn_rnn_layer": _recurrent_layer,
    "_softmax": _elements(_SOFTMAX),
    "_log_softmax": _elements(_SOFTMAX),
    "native_layer_norm": _elements(_LAYER_NORM),
    "native_group_norm": _elements(_LAYER_NORM),
    "native_batch_norm": _elements(_LAYER_NORM),
    "_native_batch_norm_legit": _elements(_LAYER_NORM),
    "_native_batch_norm_legit_no_training": _elements(4),
    "cudnn_batch_norm": _elements(_LAYER_NORM),
    "_scaled_dot_product_attention": _attention,
    "_scaled_dot_product_attention_math": _attention,
    "_scaled_dot_product_flash_attention": _attention,
    "_scaled_dot_product_flash_attention_for_cpu": _attention,
    "_scaled_dot_product_efficient_attention": _attention,
    "_scaled_dot_product_cudnn_attention": _attention,
    "max_pool2d_with_indices": _pooling,
    "max_pool3d_with_indices": _pooling,
    "avg_pool2d": _pooling,
    "avg_pool3d": _pooling,
}

# Operators that move data and compute nothing.
_MOVES = frozenset(
    """
_to_copy arange as_strided_copy bernoulli_ cat clone constant_pad_nd contiguous copy_ detach diag
embedding empty empty_like empty_strided expand_copy eye fill fill_ flip full full_like gather index
index_copy index_put index_put_ index_select lift_fresh masked_fill masked_fill_ masked_select
new_empty new_empty_strided new_full new_ones new_zeros nonzero normal_ one_hot ones ones_like
permute_copy pixel_shuffle rand randn reflection_pad1d reflection_pad2d repeat replication_pad2d
roll scalar_tensor scatter scatter_ select_copy slice_copy split_copy stack to tril triu uniform_
unfold_copy upsample_nearest2d where zero_ zeros zeros_like
""".split()
)


# Views whose schemas do not say so.
_VIEWS = frozenset(("_unsafe_view", "_reshape_alias"))
_GATHERS = frozenset(("embedding", "gather", "index", "index_select"))


class Operator:
    """Sums over the calls of one operator."""

    def __init__(self):
        self.calls = self.operations = self.read_bytes = self.written_bytes = 0


class TooLong(Exception):
    """The forward took longer than the limit, as a long recurrence may."""


def _tensors(values):
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)


def _moved_bytes(tensors):
    """Returns the bytes of these tensors, each tensor once; broadcast elements count once, too."""
    total = 0
    for tensor in {id(tensor): tensor for tensor in tensors}.values():
        extents = zip(tensor.shape, tensor.stride())
        elements = math.prod(size for size, stride in extents if stride != 0 or size == 0)
        total += elements * tensor.element_size()
    return total


def new_account(seconds_max):
    """Returns an Account, or None if torch has no dispatch modes. In use it raises TooLong after
    that many seconds.
    """
    try:
        from torch.utils._python_dispatch import TorchDispatchMode
    except ImportError:
        return None

    class Account(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.operators = {}  # by name, in the order in which they first ran
            self.live_bytes = self.peak_bytes = 0  # of what operators allocate
            self._end = time.monotonic() + seconds_max

        def total(self, what):
            return sum(getattr(operator, what) for operator in self.operators.values())

        def _release(self, size_bytes):
            self.live_bytes -= size_bytes

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            if time.monotonic() > self._end:
                raise TooLong
            result = function(*args, **(kwargs or {}))
            self._count(function, args, kwargs or {}, result)
            return result

        def _count(self, function, args, kwargs, result):
            returns = getattr(getattr(function, "_schema", None), "returns", ())
            outputs = list(_tensors(result if isinstance(result, (list, tuple)) else [result]))
            fresh, written = [], []
            for index, tensor in enumerate(outputs):
                # One return may be a list of tensors.
                which = index if len(returns) == len(outputs) else 0
                alias = returns[which].alias_info if which < len(returns) else None
                if alias is None and base_name(function) in _VIEWS:
                    continue
                if alias is None:
                    fresh.append(tensor)
                if alias is None or alias.is_write:
                    written.append(tensor)
            for tensor in fresh:
                self.live_bytes += _size_bytes(tensor)
                self.peak_bytes = max(self.peak_bytes, self.live_bytes)
                weakref.finalize(tensor, self._release, _size_bytes(tensor))
            if not written:
                return  # a view
            inputs = list(_tensors([*args, *kwargs.values()]))
            name = base_name(function)
            operator = self.operators.setdefault(name.rstrip("_") or name, Operator())
            operator.calls += 1
            written_bytes = _moved_bytes(written)
            if name in _GATHERS:  # of the table no more than comes out
                indices = [tensor for tensor in inputs if not tensor.dtype.is_floating_point]
                operator.read_bytes += written_bytes + _moved_bytes(indices)
            else:
                operator.read_bytes += _moved_bytes(inputs)
            operator.written_bytes += written_bytes
            arguments = Arguments(function, args, kwargs)
            operator.operations += _operations(name, arguments, inputs, written)

    return Account()


def _operations(name, args, inputs, outputs):
    if name in _MOVES or name.endswith("_copy"):
        return 0
    if name in _RULES:
        try:
            return int(_RULES[name](args, outputs[0]))
        except (AttributeError, IndexError, TypeError):
            pass  # another version's signature: as if it were an operator like any other
    return max((tensor.numel() for tensor in (*inputs, *outputs)), default=0)
