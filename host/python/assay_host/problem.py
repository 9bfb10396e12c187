"""Loading a problem file: source, changed constants, a fresh module, Model, get_inputs,
get_init_inputs.
"""

import ast
import difflib
import json
import random
import sys
import types

import torch

from assay_host import failure, forms
from assay_host.failure import Failure

SOURCE_BYTES_MAX = 4 << 20
_EXPONENT_MAX = 1000


def read_source(path):
    """Returns the file's text. Raises Failure if it is too large or not text."""
    try:
        with open(path, "rb") as file:
            data = file.read(SOURCE_BYTES_MAX + 1)
    except FileNotFoundError as error:  # nothing was written
        raise Failure(failure.PROBLEM_LOAD, "the problem file is empty") from error
    except OSError as error:
        raise Failure(
            failure.PROBLEM_LOAD, f"the problem file cannot be read: {error.strerror}"
        ) from error
    if len(data) > SOURCE_BYTES_MAX:
        raise Failure(failure.PROBLEM_LOAD, "the problem file is larger than 4 MiB")
    if b"\0" in data:
        raise Failure(failure.PROBLEM_LOAD, "the problem file is not Python: it holds NUL bytes")
    return data


def parse(path):
    """Returns the file's syntax tree. Raises Failure with the line of the first error."""
    try:
        return parse_text(read_source(path), path)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise failure.because(failure.PROBLEM_LOAD, error, path) from error


def parse_text(source, path):
    tree = ast.parse(source, filename=path)
    tree.body = [one for statement in tree.body for one in _one_name_each(statement)]
    return tree


def _one_name_each(statement):
    """Splits `height, width = 64, 64` into two assignments, so that --set can change either; leaves
    anything but constants as it is.
    """
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return [statement]
    names, values = statement.targets[0], statement.value
    sequences = (ast.Tuple, ast.List)
    if (
        not isinstance(names, sequences)
        or not isinstance(values, sequences)
        or len(names.elts) != len(values.elts)
        or not all(isinstance(name, ast.Name) for name in names.elts)
        or not all(is_constant(value) for value in values.elts)
    ):
        return [statement]
    return [
        ast.copy_location(ast.Assign([name], value), statement)
        for name, value in zip(names.elts, values.elts)
    ]


def assigned_names(statement):
    if isinstance(statement, ast.Assign):
        return [target.id for target in statement.targets if isinstance(target, ast.Name)]
    if isinstance(statement, ast.AnnAssign) and statement.value is not None and statement.simple:
        return [statement.target.id]
    return []


def constant_names(tree):
    """Returns the names that the module assigns at top level, in order: those that --set can
    change.
    """
    names = []
    for statement in tree.body:
        names += [name for name in assigned_names(statement) if name not in names]
    return names


def parse_value(name, text):
    """Parses a value of --set: a Python literal, arithmetic on numbers, or a torch dtype."""
    hint = (
        f"--set {name}={text[:100]}: the value must be a Python literal (text needs quotes) "
        "or arithmetic on numbers"
    )
    try:
        expression = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Failure(failure.PROBLEM_SET, hint) from error
    if not is_constant(expression):
        raise Failure(failure.PROBLEM_SET, hint)
    return expression


def is_constant(node):
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.UnaryOp):
        return is_constant(node.operand)
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, (ast.Pow, ast.LShift)) and not _is_small(node.right):
            return False
        numeric = (
            ast.Add,
            ast.Sub,
            ast.Mult,
            ast.Div,
            ast.FloorDiv,
            ast.Mod,
            ast.Pow,
            ast.LShift,
            ast.RShift,
        )
        return isinstance(node.op, numeric) and _is_number(node.left) and _is_number(node.right)
    if isinstance(node, (ast.List, ast.Tuple)):
        return all(is_constant(item) for item in node.elts)
    if isinstance(node, ast.Dict):
        return all(key is not None and is_constant(key) for key in node.keys) and all(
            is_constant(value) for value in node.values
        )
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "torch"
        and isinstance(getattr(torch, node.attr, None), torch.dtype)
    )


def _is_number(node):
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float))
    return isinstance(node, (ast.UnaryOp, ast.BinOp)) and is_constant(node)


def _is_small(node):
    # Keeps 9**9**9 from running without end.
    if isinstance(node, ast.UnaryOp):
        return _is_small(node.operand)
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, (int, float))
        and abs(node.value) <= _EXPONENT_MAX
    )


def apply_settings(tree, settings):
    """Replaces the value of every top-level assignment to each name. Raises Failure(kProblemSet)
    for a name without one.
    """
    for name, text in settings.items():
        value = parse_value(name, text)
        _refuse_other_forms(tree, name)
        body = []
        changed = False
        for statement in tree.body:
            if name not in assigned_names(statement):
                body.append(statement)
                continue
            changed = True
            if isinstance(statement, ast.Assign) and len(statement.targets) > 1:  # A = B = 4
                statement.targets = [
                    target
                    for target in statement.targets
                    if not (isinstance(target, ast.Name) and target.id == name)
                ]
                body.append(statement)
                statement = ast.copy_location(
                    ast.Assign([ast.Name(name, ast.Store())], None), statement
                )
            statement.value = ast.copy_location(value, statement)
            for node in ast.walk(value):
                ast.copy_location(node, statement)
            body.append(statement)
        if not changed:
            raise Failure(failure.PROBLEM_SET, _unknown_name(tree, name))
        tree.body = body
    return ast.fix_missing_locations(tree)


def parse_set(path, settings, other=b""):
    """Returns the file's tree with the constants of the settings, or of `other`, a JSON text."""
    return apply_settings(parse(path), json.loads(other) if other else settings.get("set", {}))


def apply_known_settings(tree, settings):
    """Applies the settings for which the file has a constant in a form that can be changed; a
    candidate need not have the problem's constants.
    """
    names = constant_names(tree)
    for name, text in settings.items():
        if name in names:
            try:
                tree = apply_settings(tree, {name: text})
            except Failure:
                pass
    return tree


def _refuse_other_forms(tree, name):
    for statement in tree.body:
        if isinstance(statement, ast.AugAssign) and getattr(statement.target, "id", None) == name:
            raise Failure(
                failure.PROBLEM_SET,
                f"--set {name}: line {statement.lineno} of the problem changes {name} "
                "in place, so its value cannot be replaced",
            )
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, (ast.Tuple, ast.List)) and any(
                    isinstance(node, ast.Name) and node.id == name for node in ast.walk(target)
                ):
                    raise Failure(
                        failure.PROBLEM_SET,
                        f"--set {name}: line {statement.lineno} of the problem assigns "
                        "several names at once, which --set cannot change; write one "
                        "assignment a line",
                    )


def _unknown_name(tree, name):
    names = constant_names(tree)
    if not names:
        return f"--set {name}: the problem has no constants at module level"
    near = difflib.get_close_matches(name, names, 1) or [
        other for other in names if other.lower() == name.lower()
    ]
    nearest = f" (did you mean {near[0]}?)" if near else ""
    shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    return f"--set {name}: the problem has no such constant{nearest}; it has {shown}"


def execute(tree, path):
    """Runs the module in a fresh namespace. Its `Model` is the class to judge, whose name in the
    file is its `class_name`. Raises Failure(kProblemLoad).
    """
    module = types.ModuleType("problem")
    module.__file__ = path
    sys.modules["problem"] = module
    sys.argv = [path]  # not the host's: a file may read them as it is imported
    try:
        exec(compile(tree, path, "exec"), module.__dict__)  # the problem file is the user's own
    except BaseException as error:
        raise failure.because(failure.PROBLEM_LOAD, error, path) from error
    module.class_name = forms.class_name(module, tree)
    module.Model = getattr(module, module.class_name)
    if not callable(getattr(module, "get_inputs", None)):
        raise Failure(
            failure.PROBLEM_LOAD,
            "the problem file defines no get_inputs: it returns forward's arguments in a list, "
            "such as [torch.randn(64, 64)]",
        )
    return module


def seed_everything(seed):
    """Seeds every generator that get_inputs() or a constructor may draw from."""
    # Without CUDA there is one generator: seeding it alone takes 1 us, manual_seed 19.
    alone = not torch.backends.cuda.is_built()
    seed_torch = torch.default_generator.manual_seed if alone else torch.manual_seed
    seed_torch(seed & (2**63 - 1))
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed & 0xFFFFFFFF)


def init_inputs(module, path):
    """Returns the constructor's arguments as a list, empty for a problem without
    get_init_inputs().
    """
    if not hasattr(module, "get_init_inputs"):
        return []
    return _call_for_list(module.get_init_inputs, "get_init_inputs", module.Model, path)


def inputs(module, model, path):
    """Returns the arguments of the model's forward as a list."""
    return _call_for_list(module.get_inputs, "get_inputs", model.forward, path)


def _call_for_list(function, name, taker, path):
    try:
        result = function()
    except BaseException as error:
        raise failure.because(
            failure.PROBLEM_INPUTS, error, path, f"{name}() fails: "
        ) from error
    return forms.arguments(result, taker, name)


def construct(module, arguments, path):
    """Returns Model(*arguments), in its mode after construction. Raises Failure(kProblemLoad)."""
    try:
        model = module.Model(*arguments)
    except BaseException as error:
        made = f"{module.class_name}({failure.counted(len(arguments), 'argument')})"
        raise failure.because(failure.PROBLEM_LOAD, error, path, made + " fails: ") from error
    if not isinstance(model, torch.nn.Module):
        raise Failure(failure.PROBLEM_LOAD, f"{module.class_name} is not a torch.nn.Module")
    return model
