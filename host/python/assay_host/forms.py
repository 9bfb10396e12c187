"""The forms that a problem's file may have: KernelBench's, whose class is named Model and whose
functions return lists, and KernelBook's, whose class has any name and whose get_init_inputs()
returns [arguments, keywords].
"""

import ast
import inspect
import types

import torch

from assay_host import failure
from assay_host.failure import Failure

_KEYWORD_ONLY = inspect.Parameter.KEYWORD_ONLY
_NAMES_SHOWN = 6


def class_name(module, tree):
    """Returns the name of the class to judge: Model, or else the only module class of the file that
    no other of its classes and functions uses. Raises Failure(kProblemLoad).
    """
    if callable(getattr(module, "Model", None)):
        return "Model"
    nodes = {
        node.name: node
        for node in tree.body
        if isinstance(node, ast.ClassDef) and _is_module(getattr(module, node.name, None))
    }
    users = [*nodes.values(), *(node for node in tree.body if isinstance(node, ast.FunctionDef))]
    used = {
        name.id
        for user in users
        for name in ast.walk(user)
        if isinstance(name, ast.Name) and name.id != user.name
    }
    free = [name for name in nodes if name not in used]
    if len(free) == 1:
        return free[0]
    if nodes:
        shown = ", ".join(list(nodes)[:_NAMES_SHOWN])
        raise Failure(
            failure.PROBLEM_LOAD,
            f"the problem file defines no class Model, but {shown}: name the one to judge Model",
        )
    missing = " and no get_inputs" if not callable(getattr(module, "get_inputs", None)) else ""
    raise Failure(
        failure.PROBLEM_LOAD,
        f"the problem file defines no Model{missing}: write {_wrapped(module)}, and get_inputs() "
        "that returns forward's arguments in a list",
    )


def _is_module(value):
    return isinstance(value, type) and issubclass(value, torch.nn.Module)


def _wrapped(module):
    """Returns the words of a class around the file's last function."""
    functions = [
        (name, value)
        for name, value in vars(module).items()
        if isinstance(value, types.FunctionType)
        and value.__module__ == module.__name__
        and not name.startswith(("get_", "_"))
    ]
    name, arguments = "fn", "x"
    if functions:
        name, function = functions[-1]
        parameters = inspect.signature(function).parameters.values()
        required = [item.name for item in parameters if item.default is item.empty]
        arguments = ", ".join(required) or "x"
    return (
        "`class Model(torch.nn.Module):` with "
        f"`def forward(self, {arguments}): return {name}({arguments})`"
    )


def arguments(result, function, name):
    """Returns what get_inputs() or get_init_inputs() gave as positional arguments of `function`: a
    list; [arguments, keywords]; a dict of keywords; one tensor or number. `name`: of the one that
    gave them. Raises Failure(kProblemInputs).
    """
    if isinstance(result, (torch.Tensor, bool, int, float)):
        return [result]
    signature = _signature(function)
    if isinstance(result, dict):
        if signature is None or not _binds(signature, [], result):
            return [result]
        return _positional(signature, [], result, name)
    if not isinstance(result, (list, tuple)):
        raise Failure(
            failure.PROBLEM_INPUTS,
            f"{name}() returns {type(result).__name__}; it must return a list of arguments",
        )
    if len(result) == 2 and isinstance(result[0], (list, tuple)) and isinstance(result[1], dict):
        given, keywords = list(result[0]), result[1]
        if signature is not None and _binds(signature, given, keywords):
            return _positional(signature, given, keywords, name)
    return list(result)


def _signature(function):
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _binds(signature, given, keywords):
    """Returns True if these are arguments of the function, keywords by parameters of their own."""
    if not all(name in signature.parameters for name in keywords):
        return False
    try:
        signature.bind(*given, **keywords)
    except TypeError:
        return False
    return True


def _positional(signature, given, keywords, name):
    kinds = {key: signature.parameters[key].kind for key in keywords}
    alone = [key for key, kind in kinds.items() if kind is _KEYWORD_ONLY]
    if alone:
        raise Failure(
            failure.PROBLEM_INPUTS,
            f"{name}() gives {', '.join(alone)} by keyword alone; arguments are passed by position",
        )
    bound = signature.bind(*given, **keywords)
    bound.apply_defaults()
    # Defaults after the last argument that was given are left to the function.
    names = list(bound.arguments)
    count = max([len(given), *(names.index(keyword) + 1 for keyword in keywords)])
    return list(bound.args[:count])
