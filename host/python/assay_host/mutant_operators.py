"""Mutants of single operators of a forward: one call of one operator computes something else.

A forward runs under a dispatch mode that counts the calls; at one of them the result is exchanged
for that of a careless or lazy kernel:
  dropped term     a sum of two returns its first operand; a product or a quotient likewise
  dropped part     a reduction, a product of matrices or a convolution leaves out the last 1/16 of
                   what it sums over, at least one element
  flipped branch   where, relu, clamp, abs, maximum...: the sign is wrong where the branch is taken
  ignored mask     masked_fill, tril and triu return what they were given
  uncentred        a normalisation does not take away the mean
  left out         any other operator that computes gives the first argument of its result's shape,
                   or zeros where there is none
Views and plain copies compute nothing.
"""

import collections
import sys
import time

import torch

from assay_host import data_flow, operators

# Calls of one operator in one line that get mutants, and operators in all: the first, the last, and
# some between.
_CALLS_OF_AN_OPERATOR_MAX = 4
_OPERATORS_MAX = 64
# Operators that move, make or reinterpret data.
_MOVES = set(
    "clone _to_copy copy detach lift_fresh lift_fresh_copy _unsafe_view _reshape_alias contiguous "
    "empty empty_like empty_strided new_empty zeros zeros_like ones ones_like full full_like fill "
    "zero arange scalar_tensor eye resize set _local_scalar_dense item is_same_size "
    "to_sparse to_sparse_csr to_dense _to_dense coalesce _coalesce".split()
)

# A call that has mutants. `number`: of those of its name in its line, from 1; `count`: so many.
Operator = collections.namedtuple("Operator", "name line number count")
# `operator`: the number of its Operator. `time_share`: of forward's time, what the mutant saves in
# all calls of its line, by the number of those that have mutants.
Site = collections.namedtuple("Site", "words index mutation operator time_share")

# One call as a mutant sees it. `args` hold the values from before the call.
Call = collections.namedtuple("Call", "function args kwargs named result")


def _part(count):
    """Returns how many of `count` elements a lazy kernel leaves out."""
    return max(1, count // 16)


def _broadcast(value, like):
    """Returns an operand with the result's shape and dtype."""
    if not isinstance(value, torch.Tensor):
        value = torch.tensor(value)
    return value.to(like.dtype).expand(like.shape).clone()


def _first_operand(call):
    return _broadcast(call.args[0], call.result)


def _second_operand(call):
    """Returns the second operand as the result, for the reversed order, such as 1 - x."""
    second = call.args[1]
    if not isinstance(second, torch.Tensor) or second.dim() == 0:
        return None
    return _broadcast(second, call.result)


def _without_bias(call):
    """addmm and baddbmm without the term that is added to the product."""
    return call.function(torch.zeros_like(call.args[0]), *call.args[1:], **call.kwargs)


def _dims(call, source):
    """Returns the dimensions that a reduction sums over; None for all."""
    dims = call.named.get("dim")
    if dims is None or (isinstance(dims, (list, tuple)) and not dims):
        return None
    if isinstance(dims, int):
        return [dims % source.dim()] if source.dim() else None
    return [dim % source.dim() for dim in dims]


def _shortened(tensor, dim):
    count = tensor.shape[dim]
    return tensor.narrow(dim, 0, count - _part(count)) if count > 1 else None


def _reduction_of_less(call):
    source = call.args[0]
    dims = _dims(call, source)
    if dims is None:
        less = _shortened(source.reshape(-1), 0) if source.numel() > 1 else None
    else:
        dim = max(dims, key=lambda dim: source.shape[dim])
        less = _shortened(source, dim)
    if less is None:
        return None
    return call.function(less, *call.args[1:], **call.kwargs)


def _scan_of_less(call):
    """cumsum and similar operators without the first element."""
    source = call.args[0].clone()
    dim = call.named.get("dim")
    if source.dim() == 0 or source.shape[dim] < 2:
        return None
    source.select(dim, 0).fill_(1 if "prod" in operators.base_name(call.function) else 0)
    return call.function(source, *call.args[1:], **call.kwargs)


def _product_of_less(left, right):
    """Returns a mutation with a shorter inner dimension. left, right: positions of the two factors
    among the arguments.
    """

    def mutate(call):
        args = list(call.args)
        if len(args) <= right:
            return None
        rows = _shortened(args[left], args[left].dim() - 1)
        if rows is None:
            return None
        inner = max(0, args[right].dim() - 2)
        args[left], args[right] = rows, args[right].narrow(inner, 0, rows.shape[-1])
        return call.function(*args, **call.kwargs)

    return mutate


def _convolution_of_less(call):
    """A convolution without the last of the taps of all input channels that each output sums over.
    """
    args = list(call.args)
    weight = args[1].clone(memory_format=torch.contiguous_format)
    transposed = len(args) > 6 and args[6]
    taps = weight if transposed else weight.flatten(1).t()
    if taps.shape[0] < 2:
        return None
    taps[-_part(taps.shape[0]) :] = 0
    args[1] = weight
    return call.function(*args, **call.kwargs)


def _loss_of_less(call):
    """A loss that is averaged over a batch, without the batch's last elements."""
    first = call.args[0]
    if first.dim() == 0 or first.shape[0] < 2 or call.named.get("reduction", 1) == 0:
        return None
    args = [
        _shortened(item, 0)
        if isinstance(item, torch.Tensor) and item.dim() and item.shape[0] == first.shape[0]
        else item
        for item in call.args
    ]
    return call.function(*args, **call.kwargs)


def _softmax_of_less(call):
    """A softmax whose sum lacks the last terms; the largest value is still over all."""
    dim = call.named.get("dim")
    result = call.result
    if result.dim() == 0 or result.shape[dim] < 2:
        return None
    logarithm = "log" in operators.base_name(call.function)
    shares = result.float().exp() if logarithm else result.float()
    total = _shortened(shares, dim % result.dim()).sum(dim, keepdim=True)
    return (result - total.log() if logarithm else result / total).to(result.dtype)


def _uncentred(call):
    """A normalisation without centring: adds the mean back. Normalisations return (result, mean, 1
    / deviation).
    """
    result, mean, scale = call.result
    source = call.args[0]
    weight = call.named.get("weight")
    name = operators.base_name(call.function)
    if mean.numel() == 0 or source.dim() < 2:
        return None
    back = mean.float() * scale.float()
    if name == "native_layer_norm":
        back = back.view(back.shape + (1,) * (source.dim() - back.dim())).expand(source.shape)
    elif name == "native_group_norm":
        batch, channels = source.shape[:2]
        back = back.view(batch, -1, 1).expand(batch, back.shape[-1], channels // back.shape[-1])
        back = back.reshape((batch, channels) + (1,) * (source.dim() - 2)).expand(source.shape)
    else:
        back = back.view((1, -1) + (1,) * (source.dim() - 2)).expand(source.shape)
    if weight is not None:
        if name != "native_layer_norm":
            weight = weight.view((1, -1) + (1,) * (source.dim() - 2))
        back = back * weight.float()
    return ((result.float() + back).to(result.dtype), mean, scale)


def _flipped_where(condition):
    """Returns a mutation whose result has the wrong sign where condition(call) holds."""

    def mutate(call):
        if not call.result.dtype.is_floating_point:
            return None
        return torch.where(condition(call), -call.result, call.result)

    return mutate


def _given(call):
    return call.args[0].clone()


def _left_out(call):
    """Returns the first argument of the result's shape in its place; zeros without one. Of several
    results the first is exchanged.
    """
    several = isinstance(call.result, (list, tuple))
    result = call.result[0] if several else call.result
    given = [*call.args, *_items(call.args)]
    same = (x for x in given if isinstance(x, torch.Tensor) and x.shape == result.shape)
    first = next(same, None)
    other = torch.zeros_like(result) if first is None else first.to(result.dtype).clone()
    return type(call.result)((other, *call.result[1:])) if several else other


_DROPPED = (("drops its second term", _first_operand), ("drops its first term", _second_operand))
_FACTOR = (("drops its second factor", _first_operand),)
_LESS = (("leaves out the last of what it reduces", _reduction_of_less),)
_PART_OF_LOSS = (("leaves out the last of the batch", _loss_of_less),)
_FLIPPED = "flips the sign where "

_MUTATIONS = {
    "add": _DROPPED,
    "sub": _DROPPED[:1],
    "rsub": (("drops its first term", _first_operand),),
    "mul": _FACTOR,
    "div": _FACTOR,
    "addmm": (
        ("drops the bias", _without_bias),
        ("leaves out the last of the sum", _product_of_less(1, 2)),
    ),
    "addcmul": (("drops the product", _first_operand),),
    "addcdiv": (("drops the quotient", _first_operand),),
    "baddbmm": (
        ("drops the bias", _without_bias),
        ("leaves out the last of the sum", _product_of_less(1, 2)),
    ),
    "convolution": (("leaves out the last of the sum", _convolution_of_less),),
    "_softmax": (("leaves out the last of the sum", _softmax_of_less),),
    "_log_softmax": (("leaves out the last of the sum", _softmax_of_less),),
    "cumsum": (("leaves out the first term", _scan_of_less),),
    "cumprod": (("leaves out the first factor", _scan_of_less),),
    "where": ((_FLIPPED + "the condition holds", _flipped_where(lambda call: call.args[0])),),
    "relu": ((_FLIPPED + "values are positive", _flipped_where(lambda call: call.args[0] > 0)),),
    "abs": (("returns negative values as they are", _given),),
    "masked_fill": (("ignores the mask", _given),),
    "tril": (("ignores the triangle", _given),),
    "triu": (("ignores the triangle", _given),),
}
for _name in ("mm", "bmm", "mv", "dot", "vdot"):
    _MUTATIONS[_name] = (("leaves out the last of the sum", _product_of_less(0, 1)),)
for _name in (
    "sum mean amax amin max min argmax argmin logsumexp var std norm linalg_vector_norm prod any "
    "all nansum var_mean std_mean median"
).split():
    _MUTATIONS[_name] = _LESS
for _name in (
    "nll_loss_forward mse_loss smooth_l1_loss huber_loss binary_cross_entropy "
    "binary_cross_entropy_with_logits l1_loss soft_margin_loss"
).split():
    _MUTATIONS[_name] = _PART_OF_LOSS
for _name in "native_layer_norm native_group_norm native_batch_norm".split():
    _MUTATIONS[_name] = (("does not take away the mean", _uncentred),)
for _name in "leaky_relu elu gelu silu hardswish softshrink hardshrink prelu selu celu".split():
    _MUTATIONS[_name] = (
        (_FLIPPED + "values are negative", _flipped_where(lambda call: call.args[0] < 0)),
    )
for _name in "clamp clamp_min clamp_max hardtanh threshold".split():
    _MUTATIONS[_name] = (
        (_FLIPPED + "it cuts", _flipped_where(lambda call: call.args[0] != call.result)),
        ("cuts nothing", _given),
    )
for _name in "maximum minimum".split():
    _MUTATIONS[_name] = (
        (
            _FLIPPED + "the first is larger",
            _flipped_where(lambda call: call.args[0] > call.args[1]),
        ),
    )


# The arguments that the result of a mutation rests on; all of them for others.
_KEPT = {
    _first_operand: (0,),
    _second_operand: (1,),
    _given: (0,),
    _without_bias: (1, 2),
    _left_out: data_flow.FIRST_OF_ITS_SHAPE,
}


def _mode():
    """Returns the base class of dispatch modes, or None if torch has none."""
    try:
        from torch.utils._python_dispatch import TorchDispatchMode
    except ImportError:
        return None
    return TorchDispatchMode


def _name_of(function):
    name = operators.base_name(function)
    return name if name in _MUTATIONS else name.rstrip("_")


def _writes_in_place(function):
    arguments = getattr(getattr(function, "_schema", None), "arguments", ())
    return any(item.alias_info is not None and item.alias_info.is_write for item in arguments[:1])


def _shape_of(result):
    items = result if isinstance(result, (list, tuple)) else [result]
    return [(tuple(item.shape), item.dtype) for item in items if isinstance(item, torch.Tensor)]


def _computes(function, args, result):
    """Returns True if the result is a tensor, or begins with one, and no view or copy of a given
    one.
    """
    if _name_of(function) in _MOVES or not any(isinstance(item, torch.Tensor) for item in args):
        return False
    returns = getattr(getattr(function, "_schema", None), "returns", ())
    alias = returns[0].alias_info if returns else None
    first = result[0] if isinstance(result, (list, tuple)) and result else result
    is_view = alias is not None and not alias.is_write
    return isinstance(first, torch.Tensor) and first.numel() > 0 and not is_view


def _line_in(path):
    """Returns the line of the problem's file that makes the present call; 0: it does not."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename != path:
        frame = frame.f_back
    return frame.f_lineno if frame is not None else 0


def _calls(forward, path):
    """Returns (index, name, line) of each call that computes, in order, and the DataFlow."""
    base = _mode()
    forward()  # what starts late has started
    flow = data_flow.DataFlow()

    class Calls(base):
        def __init__(self):
            super().__init__()
            self.count = 0
            self.found = []

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            begin = time.perf_counter()
            result = function(*args, **(kwargs or {}))
            seconds = time.perf_counter() - begin
            given = [*args, *(kwargs or {}).values()]
            if _computes(function, [*given, *_items(given)], result):
                self.found.append((self.count, _name_of(function), _line_in(path)))
            flow.add(self.count, given, result, _writes_in_place(function), seconds)
            self.count += 1
            return result

    calls = Calls()
    with calls:
        outputs = forward()
    flow.end(outputs)
    return calls.found, flow


def _items(values):
    """Returns what lists among the values hold."""
    return [item for value in values if isinstance(value, (list, tuple)) for item in value]


def run(forward, index, mutation):
    """Returns forward's result with `mutation` at the call with this index; None if it does not
    apply there.
    """
    base = _mode()

    class Mutated(base):
        def __init__(self):
            super().__init__()
            self.count = 0
            self.applied = False

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            self.count += 1
            if self.count - 1 != index:
                return function(*args, **kwargs)
            return self._mutate(function, args, kwargs)

        def _mutate(self, function, args, kwargs):
            in_place = _writes_in_place(function)
            before = (args[0].clone(), *args[1:]) if in_place else args
            result = function(*args, **kwargs)
            named = operators.Arguments(function, before, kwargs).named
            other = mutation(Call(function, before, kwargs, named, result))
            if other is None or _shape_of(other) != _shape_of(result):
                return result
            self.applied = True
            return result.copy_(other) if in_place else other

    mode = Mutated()
    with mode:
        result = forward()
    return result if mode.applied else None


def _if_floating(rounding):
    return (
        lambda item: rounding(item)
        if isinstance(item, torch.Tensor) and item.dtype.is_floating_point
        else item
    )


def rounded(forward, rounding):
    """Returns forward's result with every operator's floating-point results rounded."""
    base = _mode()
    if base is None:
        return forward()

    class Rounded(base):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            if isinstance(result, tuple):
                return tuple(map(_if_floating(rounding), result))
            if not isinstance(result, torch.Tensor) or not result.dtype.is_floating_point:
                return result
            returns = getattr(getattr(function, "_schema", None), "returns", ())
            alias = returns[0].alias_info if returns else None
            if alias is None:
                return rounding(result)
            return result.copy_(rounding(result)) if alias.is_write else result

    with Rounded():
        return forward()


def evenly(items, count):
    """Returns at most `count` of the items, with the first and the last."""
    if len(items) <= count:
        return items
    return [items[index * (len(items) - 1) // (count - 1)] for index in range(count)]


def sites(forward, path):
    """Returns the Operators of forward, the Sites of their mutants, and how many operators are left
    out. `path`: the problem's file.
    """
    if _mode() is None:
        return [], [], 0
    places = collections.defaultdict(list)
    calls, flow = _calls(forward, path)
    for index, name, line in calls:
        places[name, line].append(index)
    every = [
        (Operator(name, line, indices.index(index) + 1, len(indices)), index)
        for (name, line), indices in places.items()
        for index in evenly(indices, _CALLS_OF_AN_OPERATOR_MAX)
    ]
    every.sort(key=lambda each: each[1])
    chosen = evenly(every, _OPERATORS_MAX)
    # A call of a loop stands for its part of all calls of that line.
    standing = collections.Counter((operator.name, operator.line) for operator, _ in chosen)
    found = []
    for number, (operator, index) in enumerate(chosen):
        place = operator.name, operator.line
        for words, mutation in _mutations(operator.name):
            share = flow.saved_share(places[place], _KEPT.get(mutation)) / standing[place]
            found.append(Site(f"{_label(operator)} {words}", index, mutation, number, share))
    wanted = sum(map(len, places.values()))
    return [operator for operator, _ in chosen], found, wanted - len(chosen)


def _label(operator):
    label = operator.name.strip("_")
    if operator.count > 1:
        label += f" {operator.number}"
    return label + (f" in line {operator.line}" if operator.line else "")


def _mutations(name):
    own = _MUTATIONS.get(name, ())
    leaves_out = any(mutation in (_given, _first_operand) for _, mutation in own)
    return own if leaves_out else (*own, ("is left out", _left_out))
