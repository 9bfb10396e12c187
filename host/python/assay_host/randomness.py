"""Refuses a problem whose forward gives other outputs for the same inputs, and says what draws."""

import sys

import torch

from assay_host import failure, values
from assay_host.failure import Failure

# None in PyTorch before 1.13: then nothing is named.
_FunctionMode = getattr(torch.overrides, "TorchFunctionMode", None)

# Modules that do other things in training mode.
_BY_MODE = (
    torch.nn.modules.batchnorm._NormBase,
    torch.nn.modules.dropout._DropoutNd,
    torch.nn.RNNBase,
)


def refuse(model, path, first, again):
    """Raises Failure(kProblemRandom) if `again(seed)`, which calls forward with the same inputs
    under a seed, gives other outputs than `first`, copies of those of a call under seed 1. `path`:
    the problem's file. A model that is refused may be left in another mode.
    """
    if _agree(first, again(2)):
        return
    raise Failure(
        failure.PROBLEM_RANDOM,
        "forward gives other outputs when it is called again with the same inputs; "
        + _why(model, path, again),
    )


def _agree(first, second):
    return len(first) == len(second) and all(map(values.same_but_for_rounding, first, second))


def _repeats(again, seed, other):
    # A module may give the same memory each time.
    return _agree([tensor.clone() for tensor in again(seed)], again(other))


def _why(model, path, again):
    if not _repeats(again, 1, 1):
        advice = "make the state an input that forward changes"
        if any(each.training and isinstance(each, _BY_MODE) for each in model.modules()):
            advice = f"call self.eval() in the constructor, or {advice}"
        return f"its result depends on earlier calls: {advice}"
    drawn = _first_drawn(model, path, again)
    model.eval()
    if _repeats(again, 1, 2):
        name = drawn.module or drawn.function if drawn else "a module"
        zero = ", or set its probability to 0" if drawn and drawn.module else ""
        return (
            f"{name} draws random numbers in training mode: call self.eval() in the "
            f"constructor{zero}"
        )
    if drawn is None:
        return "it draws random numbers"
    if drawn.can_train:
        return (
            f"{drawn.function} draws random numbers in every mode: give it training=self.training, "
            "and call self.eval() in the constructor"
        )
    return f"it draws random numbers: {drawn.function}"


class _Drawn:
    """A function that draws random numbers, and who calls it. `module`: "rnn (LSTM)"; None if the
    problem's own file calls the function.
    """

    def __init__(self, function, names, path):
        self.module = None
        name = getattr(function, "__name__", "a function")
        place = getattr(function, "__module__", None) or ""
        functional = place == "torch.nn.functional"
        code = getattr(function, "__code__", None)
        self.can_train = functional and code is not None and "training" in code.co_varnames
        self.function = ("F." if functional else "torch." if place == "torch" else "") + name
        frame = sys._getframe(2)
        while frame is not None and frame.f_code.co_filename != path:
            owner = frame.f_locals.get("self")
            if self.module is None and isinstance(owner, torch.nn.Module):
                self.module = f"{names.get(owner) or 'a module'} ({type(owner).__name__})"
            frame = frame.f_back
        if frame is not None:
            self.function += f" in line {frame.f_lineno}"


def _first_drawn(model, path, again):
    """Returns the _Drawn of the first call of PyTorch's in forward that changes the state of its
    generator; None if none is seen to.
    """
    if _FunctionMode is None:
        return None
    names = {module: name for name, module in model.named_modules()}
    found = []

    class Watch(_FunctionMode):
        def __torch_function__(self, function, _types, arguments=(), keywords=None):
            before = None if found else _generator_states()
            result = function(*arguments, **(keywords or {}))
            if before is not None and before != _generator_states():
                found.append(_Drawn(function, names, path))
            return result

    try:
        with Watch():
            again(1)
    except Exception:  # code that such a mode cannot watch: what was seen before counts
        pass
    return found[0] if found else None


def _generator_states():
    states = [torch.get_rng_state()]
    if torch.cuda.is_initialized():
        states.append(torch.cuda.get_rng_state())
    return [state.numpy().tobytes() for state in states]
