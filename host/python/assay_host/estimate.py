"""How much memory and work a problem needs, found without allocating it: get_inputs, Model and
forward run under fake tensors, which have shapes and dtypes but no storage.

kEstimate: args[0] limit [bytes] for one slot and its weights. Results of kDone:
  [input bytes, parameter bytes, output bytes, 1 when it could be estimated, most bytes alive inside
  forward, the sum that is held against the limit, bytes written to the request's descriptor, bytes
  of the outputs in float64]
Where the sum exceeds the limit, the report's text is a sentence with the `--set` that would fit, or
empty. A descriptor that comes along gets the account as JSON (see account()).
"""

import ast
import copy
import json
import math
import time

import torch

from assay_host import describe, failure, gradients, operators, problem, structure
from assay_host.failure import Failure

# A `--set` that is proposed brings the sum under this on a CPU, and the operations of one forward
# under the other, where both are larger: drawing and timing such values fits the usual minute.
_COMFORT_BYTES, _COMFORT_OPERATIONS = 2**27, 2 * 10**10
_SEARCH_SECONDS_MAX = 10.0
_FORWARD_SECONDS_MAX = 4.0
_HALVINGS_MAX = 40


class Need:
    """Bytes of one problem at one setting. `forward_known` is False if fake tensors cannot follow
    forward; outputs, truth (those in float64) and peak are then 0.
    """

    def __init__(self, inputs, parameters):
        self.inputs, self.parameters = inputs, parameters
        self.outputs = self.truth = self.peak = 0
        self.forward_known = False
        self.operators = {}  # of one forward, by name
        self.signature = {"inputs": [], "parameters": [], "outputs": []}
        self.figures = {}  # of suite.toml, evaluated

    def total(self):
        """Returns the bytes of inputs, parameters and outputs, and of forward's own memory,
        weighted: a judgement holds about eight copies of the former, beside three times the latter
        (once natively, twice as large in float64).
        """
        return self.inputs + self.parameters + self.outputs + 3 * self.peak // 8


    def is_comfortable(self, limit):
        """Returns True if the sum is within the limit and forward's operations are few."""
        operations = sum(operator.operations for operator in self.operators.values())
        return self.total() <= limit and operations <= _COMFORT_OPERATIONS


class Result:
    def __init__(self, need, suggestion):
        self.need = need
        self.suggestion = suggestion

    def as_args(self):
        if self.need is None:
            return 0, 0, 0, 0, 0, 0
        need = self.need
        return need.inputs, need.parameters, need.outputs, 1, need.peak, need.total()


def _bytes(tensor):
    return tensor.numel() * tensor.element_size()


def _fake_mode():
    from torch._subclasses.fake_tensor import FakeTensorMode

    try:
        # Without kernels that run for real, and without made-up values from .item().
        return FakeTensorMode(allow_fallback_kernels=False, throw_on_data_dependent_ops=True)
    except TypeError:
        return FakeTensorMode(allow_fallback_kernels=False)


def measure(tree, path, expressions=None):
    """Returns the Need of the problem in the syntax tree; None if fake tensors cannot follow it at
    all. Raises Failure if one of suite.toml's expressions has no value.
    """
    torch.set_grad_enabled(False)
    figures = {}
    try:
        with _fake_mode():
            module = problem.execute(copy.deepcopy(tree), path)
            figures = _figures(expressions or {}, module)
            problem.seed_everything(0)
            model = problem.construct(module, problem.init_inputs(module, path), path)
            leaves = []
            inputs = problem.inputs(module, model, path)
            names = describe.forward_names(model.forward, len(inputs))
            template = (
                "list",
                [structure.flatten(value, name, leaves) for value, name in zip(inputs, names)],
            )
            tensors = {name: value for name, value in leaves if isinstance(value, torch.Tensor)}
            state = {
                name: structure.real(tensor)
                for name, tensor in model.state_dict().items()
                if torch.is_tensor(tensor)
            }
            need = Need(sum(map(_bytes, tensors.values())), sum(map(_bytes, state.values())))
            need.figures = figures
            need.signature["inputs"] = _lines(tensors)
            need.signature["parameters"] = _lines(state)
            _follow_forward(model, template, leaves, need)
            return need
    except _BadFigure as error:
        raise Failure(failure.PROBLEM_LOAD, str(error)) from error
    except Exception:
        return None  # the load tells what is wrong with the file, if anything is


class _BadFigure(Exception):
    pass


def _figures(expressions, module):
    """Returns suite.toml's `flops` and `bytes`, which are arithmetic on numbers and the module's
    constants.
    """
    found = {}
    for key, text in expressions.items():
        try:
            figure = float(_evaluate(ast.parse(text.strip(), mode="eval").body, module))
            if not 0 <= figure < math.inf:
                raise ValueError(f"{figure} is no count")
            found[key] = figure
        except (SyntaxError, ValueError, ArithmeticError, RecursionError, TypeError) as error:
            raise _BadFigure(f"`{key}` in suite.toml, {text!r}: {error}") from error
    return found


_ARITHMETIC = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a // b,
}


def _evaluate(node, module):
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return node.value
    if isinstance(node, ast.Name):
        value = getattr(module, node.id, None)
        if type(value) in (int, float):
            return value
        raise ValueError(f"the problem has no number {node.id}")
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        return _ARITHMETIC[type(node.op)](
            _evaluate(node.left, module), _evaluate(node.right, module)
        )
    raise ValueError("only numbers, constants of the problem, + - * / // and parentheses")


def _lines(tensors):
    """Returns 'x float32[64, 1024]' for each tensor by name."""
    return [
        f"{name} {str(tensor.dtype).replace('torch.', '')}{list(tensor.shape)}"
        for name, tensor in tensors.items()
    ]


def _follow_forward(model, template, leaves, need):
    arguments = structure.rebuild(template, [value for _, value in leaves])
    tensors = {name: value for name, value in leaves if isinstance(value, torch.Tensor)}
    versions = {name: value._version for name, value in tensors.items()}
    account = operators.new_account(_FORWARD_SECONDS_MAX)
    try:
        if account is None:
            result = model(*arguments)
        else:
            with account:
                result = model(*arguments)
            need.peak = account.peak_bytes
        # A changed input is output once, though forward may return it as well (inplace.py).
        changed = {n: value for n, value in tensors.items() if value._version != versions[n]}
        results = structure.flatten_outputs(result, [])
        outputs = [tensor for tensor in results if not any(tensor is x for x in changed.values())]
        own = gradients.names(model, leaves)
        named = dict(zip(describe.output_names(len(outputs), own), outputs))
        named.update({f"{name}_after": value for name, value in changed.items()})
        need.outputs = sum(map(_bytes, named.values()))
        need.truth = sum(8 * t.numel() for t in named.values() if t.dtype.is_floating_point)
        need.signature["outputs"] = _lines(named)
        need.operators = account.operators if account else {}
        need.forward_known = True
    except Exception:
        need.peak = 0


def _sizes(tree):
    """Returns the top-level constants that are a positive integer or a tuple of them (written out
    or as arithmetic), by name, each as a tuple.
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
    """Returns sets of constants to halve together, in the order of trial: a batch size first (down
    to 2), then the largest size, so that shapes stay balanced; each alone, then all equal ones, for
    files in which two constants must agree.
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


def _suggest(tree, path, settings, need, fits):
    """Returns the `--set` options that bring the need to where it fits, or an empty text. Halves
    constants in turn as long as each step saves a tenth.
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
        if fits(need):
            options = (f"--set {name}={_shell_text(value)}" for name, value in changed.items())
            return " ".join(options)
    return ""


def _measure_with(path, settings):
    try:
        return measure(problem.apply_settings(problem.parse(path), settings), path)
    except Failure:
        return None


def _shell_text(value):
    return f"'{value}'" if isinstance(value, (tuple, list)) else str(value)


def account(need):
    """Returns signature, figures of the suite and operators as JSON; unknown parts are missing."""
    if need is None:
        return "{}"
    document = {**need.signature, "figures": need.figures, "forward_known": need.forward_known}
    document["peak_bytes"] = need.peak
    document["operators"] = [
        {
            "name": name,
            "calls": operator.calls,
            "operations": operator.operations,
            "read_bytes": operator.read_bytes,
            "written_bytes": operator.written_bytes,
        }
        for name, operator in need.operators.items()
    ]
    return json.dumps(document)


def estimate(tree, path, settings, limit, host_settings=None):
    """See the module's text. `host_settings`: of the host, for the suite's figures and the device.
    Raises Failure(kProblemSet) for settings that do not apply.
    """
    host_settings = host_settings or {}
    tree = problem.apply_settings(tree, settings)
    need = measure(tree, path, host_settings.get("figures"))
    if need is None or limit == 0 or need.total() <= limit:
        return Result(need, "")
    if host_settings.get("device", "cpu") != "cpu":
        return Result(need, _suggest(tree, path, settings, need, lambda n: n.total() <= limit))
    comfort = min(limit, _COMFORT_BYTES)
    return Result(need, _suggest(tree, path, settings, need, lambda n: n.is_comfortable(comfort)))
