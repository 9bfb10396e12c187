"""How much memory a problem needs, found without allocating it: get_inputs, Model and forward run under fake tensors,
which have shapes and dtypes but no storage.

kEstimate: args[0] limit [bytes] for one slot and its weights. Results of kDone:
  [input bytes, parameter bytes, output bytes, 1 when it could be estimated, most bytes alive inside forward, the sum
   that is held against the limit]
Where the sum exceeds the limit, the report's text is a sentence with the `--set` that would fit, or empty.
"""

import ast
import copy
import time
import weakref

import torch

from assay_host import problem, structure
from assay_host.failure import Failure

_SEARCH_SECONDS_MAX = 10.0
_HALVINGS_MAX = 40


class Need:
    """Bytes of one problem at one setting."""

    def __init__(self, inputs, parameters, outputs, peak):
        self.inputs, self.parameters, self.outputs, self.peak = inputs, parameters, outputs, peak

    def total(self):
        """Inputs, parameters and outputs once, and the forward's own memory: three times (once natively, twice as large
        in float64) beside about eight copies of the rest that a judgement holds."""
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
    """A dispatch mode that counts the bytes that operators allocate and that still live; None where torch has none."""
    try:
        from torch.utils._python_dispatch import TorchDispatchMode
    except ImportError:
        return None

    class LiveBytes(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.now = self.peak = 0

        def _release(self, size_bytes):
            self.now -= size_bytes

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
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


def measure(tree, path):
    """Need of the problem as the tree has it, or None where fake tensors cannot follow it."""
    try:
        from torch._subclasses.fake_tensor import FakeTensorMode

        mode = FakeTensorMode()
    except Exception:
        return None
    torch.set_grad_enabled(False)
    try:
        with mode:
            module = problem.execute(copy.deepcopy(tree), path)
            problem.seed_everything(0)
            model = problem.construct(module, problem.init_inputs(module, path), path)
            leaves = []
            template = structure.flatten(problem.inputs(module, path), "x", leaves)
            arguments = structure.rebuild(template, [value for _, value in leaves])
            peak = 0
            live = _live_bytes_mode()
            if live is not None:
                with live:
                    result = model(*arguments)
                peak = live.peak
            else:
                result = model(*arguments)
            outputs = sum(map(_bytes, structure.flatten_outputs(result, [])))
            inputs = sum(_bytes(value) for _, value in leaves if isinstance(value, torch.Tensor))
            parameters = sum(
                _bytes(tensor)
                for tensor in model.state_dict().values()
                if isinstance(tensor, torch.Tensor)
            )
            return Need(inputs, parameters, outputs, peak)
    except Exception:
        return None  # the load tells what is wrong with the file, if anything is


def _integer_constants(tree):
    """Top-level constants written as one positive integer or as arithmetic on integers, with their values."""
    found = {}
    for statement in tree.body:
        names = problem.assigned_names(statement)
        if not names or not problem.is_constant(statement.value):
            continue
        try:
            value = eval(
                compile(ast.Expression(statement.value), "constant", "eval"), {"torch": torch}
            )
        except Exception:
            continue
        if type(value) is int and value > 1:
            for name in names:
                found[name] = value
    return found


def _suggest(tree, path, settings, need, limit):
    """The `--set` options that bring the need under the limit, or empty. Halves one constant at a time: at each step
    the one that saves most, of equals the one that looks like a batch size, else the first."""
    end = time.monotonic() + _SEARCH_SECONDS_MAX
    changed = {}
    constants = _integer_constants(tree)
    for _ in range(_HALVINGS_MAX):
        best = None
        for name, value in constants.items():
            if value < 2 or time.monotonic() > end:
                continue
            trial = {**settings, **changed, name: str(value // 2)}
            try:
                other = measure(problem.apply_settings(problem.parse(path), trial), path)
            except Failure:
                continue
            if other is None or other.total() >= need.total():
                continue
            rank = (other.total(), name not in changed, "batch" not in name.lower())
            if best is None or rank < best[0]:
                best = (rank, name, other)
        if best is None:
            return ""
        _, name, need = best
        constants[name] //= 2
        changed[name] = str(constants[name])
        if need.total() <= limit:
            options = " ".join(f"--set {name}={value}" for name, value in changed.items())
            return f"It would fit with {options}"
    return ""


def estimate(tree, path, settings, limit):
    """See the module's text. Raises Failure(kProblemSet) for settings that do not apply."""
    tree = problem.apply_settings(tree, settings)
    need = measure(tree, path)
    if need is None or limit == 0 or need.total() <= limit:
        return Result(need, "")
    return Result(need, _suggest(tree, path, settings, need, limit))
