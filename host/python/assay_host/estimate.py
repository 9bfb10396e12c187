"""How much memory a problem needs, found without allocating it: get_inputs, Model and forward run
under fake tensors, which have shapes and dtypes but no storage.

kEstimate: args[0] limit [bytes] for one slot and its weights. Results of kDone:
  [input bytes, parameter bytes, output bytes, 1 when it could be estimated, most bytes alive inside
  forward, the sum
   that is held against the limit]
Where the sum exceeds the limit, the report's text is a sentence with the `--set` that would fit, or
empty.
"""

import ast
import copy
import time
import weakref

import torch

from assay_host import problem, structure
from assay_host.failure import Failure

_SEARCH_SECONDS_MAX = 10.0
_FORWARD_SECONDS_MAX = 4.0
_HALVINGS_MAX = 40


class Need:
    """Bytes of one problem at one setting. `forward_known` is False where fake tensors cannot
    follow forward: then outputs and peak are 0.
    """

    def __init__(self, inputs, parameters):
        self.inputs, self.parameters = inputs, parameters
        self.outputs = self.peak = 0
        self.forward_known = False

    def total(self):
        """Inputs, parameters and outputs once, and the forward's own memory: three times (once
        natively, twice as large in float64) beside about eight copies of the rest that a judgement
        holds.
        """
        return self.inputs + self.parameters + self.outputs + 3 * self.peak // 8


class Result:
    def __init__(self, need, suggestion):
        self._need = need
        self.suggestion = suggestion

    def as_args(self):
        if self._need is None:
            return 0, 0, 0, 0, 0, 0
        need = self._need
        return need.inputs, need.parameters, need.outputs, 1, need.peak, need.total()


def _bytes(tensor):
    return tensor.numel() * tensor.element_size()


def _live_bytes_mode():
    """A dispatch mode that counts the bytes that operators allocate and that still live; None where
    torch has none.
    """
    try:
        from torch.utils._python_dispatch import TorchDispatchMode
    except ImportError:
        return None

    class LiveBytes(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.now = self.peak = 0
            self._end = time.monotonic() + _FORWARD_SECONDS_MAX

        def _release(self, size_bytes):
            self.now -= size_bytes

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            if time.monotonic() > self._end:
                raise TimeoutError  # long recurrences: the judge waits for this
            result = function(*args, **(kwargs or {}))
            returns = getattr(getattr(function, "_schema", None), "returns", ())
            items = result if isinstance(result, (list, tuple)) else [result]
            for index, item in enumerate(items):
                # A return that aliases an argument (a view, an in-place operator) is no new memory.
                aliases = index < len(returns) and returns[index].alias_info is not None
                if isinstance(item, torch.Tensor) and not aliases:
                    size_bytes = _bytes(item)
                    self.now += size_bytes
                    self.peak = max(self.peak, self.now)
                    weakref.finalize(item, self._release, size_bytes)
            return result

    return LiveBytes()


def _fake_mode():
    from torch._subclasses.fake_tensor import FakeTensorMode

    try:
        # Without kernels that run for real, and without made-up values from .item().
        return FakeTensorMode(allow_fallback_kernels=False, throw_on_data_dependent_ops=True)
    except TypeError:
        return FakeTensorMode(allow_fallback_kernels=False)


def measure(tree, path):
    """Need of the problem as the tree has it; None where fake tensors cannot follow it at all."""
    torch.set_grad_enabled(False)
    try:
        with _fake_mode():
            module = problem.execute(copy.deepcopy(tree), path)
            problem.seed_everything(0)
            model = problem.construct(module, problem.init_inputs(module, path), path)
            leaves = []
            template = structure.flatten(problem.inputs(module, path), "x", leaves)
            tensors = [value for _, value in leaves if isinstance(value, torch.Tensor)]
            state = [tensor for tensor in model.state_dict().values() if torch.is_tensor(tensor)]
            need = Need(sum(map(_bytes, tensors)), sum(map(_bytes, state)))
            _follow_forward(
                model, structure.rebuild(template, [value for _, value in leaves]), need
            )
            return need
    except Exception:
        return None  # the load tells what is wrong with the file, if anything is


def _follow_forward(model, arguments, need):
    live = _live_bytes_mode()
    try:
        if live is None:
            result = model(*arguments)
        else:
            with live:
                result = model(*arguments)
            need.peak = live.peak
        need.outputs = sum(map(_bytes, structure.flatten_outputs(result, [])))
        need.forward_known = True
    except Exception:
        need.peak = 0


def _sizes(tree):
    """Top-level constants that are a positive integer or a tuple of them (written out or as
    arithmetic), by name, each as a tuple.
    """
    found = {}
    for statement in tree.body:
        names = problem.assigned_names(statement)
        if not names or not problem.is_constant(statement.value):
            continue
        try:
            code = compile(ast.Expression(statement.value), "constant", "eval")
            value = eval(code, {"torch": torch})  # is_constant saw numbers and dtypes alone
        except Exception:
            continue
        parts = value if isinstance(value, (tuple, list)) else (value,)
        if parts and all(type(part) is int and part > 0 for part in parts):
            found.update((name, value) for name in names)
    return found


def _largest(value):
    return max(value) if isinstance(value, (tuple, list)) else value


def _halved(value):
    if isinstance(value, (tuple, list)):
        return type(value)(max(1, part // 2) for part in value)
    return max(1, value // 2)


def _moves(sizes):
    """Sets of constants to halve together, in the order in which they are tried: a batch size first
    (down to 2), then the largest size, so that shapes stay balanced; each alone, then all that are
    equal, for files in which two constants must agree.
    """

    def rank(names):
        is_batch = any("batch" in name.lower() for name in names)
        return (not is_batch, -_largest(sizes[names[0]]), len(names))

    moves = [(name,) for name in sizes]
    for size in {_largest(value) for value in sizes.values()}:
        equal = tuple(name for name, value in sizes.items() if _largest(value) == size)
        if len(equal) > 1:
            moves.append(equal)
    smallest = [4 if "batch" in names[0].lower() else 2 for names in moves]
    return sorted(
        (names for names, least in zip(moves, smallest) if _largest(sizes[names[0]]) >= least),
        key=rank,
    )


def _suggest(tree, path, settings, need, limit):
    """A sentence with the `--set` options that bring the need under the limit, or empty: constants
    are halved in turn for as long as each step saves a tenth.
    """
    end = time.monotonic() + _SEARCH_SECONDS_MAX
    sizes = _sizes(tree)
    changed = {}
    for _ in range(_HALVINGS_MAX):
        for names in _moves(sizes):
            if time.monotonic() > end:
                return ""
            trial = {**changed, **{name: _halved(sizes[name]) for name in names}}
            other = _measure_with(path, {**settings, **{key: str(trial[key]) for key in trial}})
            if (
                other is not None
                and other.forward_known == need.forward_known
                and other.total() <= 0.9 * need.total()
            ):
                break
        else:
            return ""
        need, changed = other, trial
        sizes.update({name: trial[name] for name in names})
        if need.total() <= limit:
            options = (f"--set {name}={_shell_text(value)}" for name, value in changed.items())
            return "It would fit with " + " ".join(options)
    return ""


def _measure_with(path, settings):
    try:
        return measure(problem.apply_settings(problem.parse(path), settings), path)
    except Failure:
        return None


def _shell_text(value):
    return f"'{value}'" if isinstance(value, (tuple, list)) else str(value)


def estimate(tree, path, settings, limit):
    """See the module's text. Raises Failure(kProblemSet) for settings that do not apply."""
    tree = problem.apply_settings(tree, settings)
    need = measure(tree, path)
    if need is None or limit == 0 or need.total() <= limit:
        return Result(need, "")
    return Result(need, _suggest(tree, path, settings, need, limit))
