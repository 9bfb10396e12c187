"""Finds names that a candidate's forward is certain to look up in vain, without a call of it: a
call may wait for minutes until a slow reference has made its values.

Theory of operation: statements of forward are followed in order, and of each only what is certainly
evaluated. Bodies of branches, loops, `with` and `try` are passed over, and nothing is looked at
behind one that may leave the function. A name is missing if no global, builtin or local has it, an
attribute of self if neither the model nor its class has it; and if the file nowhere assigns it or
has it in a text, which may create it. Files that have means to create names unseen are left alone.
A name that this search does not find shows in the first call.
"""

import ast
import builtins
import inspect
import types

import torch

# By these a name may come to be that the file does not spell.
_CREATES = frozenset(
    """__builtins__ __dict__ __getattr__ __setattr__ _buffers _modules _parameters
    builtins eval exec globals vars""".split()
)
# The same, unless the name that they are given is a literal: the place of it.
_NAMED = {"add_module": 0, "register_buffer": 0, "register_module": 0, "register_parameter": 0}
_NAMED["setattr"] = 1
_PASSED_OVER = (ast.Lambda, ast.IfExp, ast.BoolOp, ast.ListComp, ast.SetComp, ast.DictComp)
_PASSED_OVER += (ast.GeneratorExp, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_LEAVES = (ast.Return, ast.Raise, ast.Yield, ast.YieldFrom, ast.Await)
_NO_PLAIN_CALL = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def find(model, path):
    """Returns 'line 12: NameError: name 'y' is not defined' for a candidate's module that was
    constructed from the file `path`; None where all may be there.
    """
    try:
        with open(path, encoding="utf-8") as file:
            tree = ast.parse(file.read())
        return _Search(model, path, tree).of_forward()
    except Exception:
        return None  # foreign code and its objects may be of any kind


class _Search:
    def __init__(self, model, path, tree):
        self._model = model
        self._path = path
        self._functions = {
            (node.lineno, node.name): node
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef) and not node.decorator_list
        }
        self._made, self._creates = _made_names(tree)

    def of_forward(self):
        model = self._model
        plain = isinstance(model, torch.nn.Module) and type(model).__call__ is (
            torch.nn.Module.__call__
        )
        method = getattr(model, "forward", None)
        if self._creates or not plain or not isinstance(method, types.MethodType):
            return None
        function = method.__func__
        code = getattr(function, "__code__", None)
        if code is None or code.co_filename != self._path or code.co_flags & _NO_PLAIN_CALL:
            return None
        node = self._functions.get((code.co_firstlineno, code.co_name))
        if node is None or method.__self__ is not model:
            return None
        for found in _certain(node.body):
            missing = self._missing(found, function)
            if missing:
                return f"line {found.lineno}: {missing}"
        return None

    def _missing(self, node, function):
        if not isinstance(getattr(node, "ctx", None), ast.Load):
            return None
        code = function.__code__
        inner = code.co_varnames + code.co_cellvars + code.co_freevars
        name = node.id if isinstance(node, ast.Name) else getattr(node, "attr", None)
        if name is None or name in self._made or name.startswith("__"):
            return None
        if isinstance(node, ast.Name):
            if name in inner or name in function.__globals__ or hasattr(builtins, name):
                return None
            return f"NameError: name '{name}' is not defined"
        own = code.co_varnames[0] if code.co_argcount > 0 else None
        if not isinstance(node.value, ast.Name) or node.value.id != own or own in self._made:
            return None
        model, kind = self._model, type(self._model)
        is_plain = kind.__getattr__ is torch.nn.Module.__getattr__
        if not is_plain or hasattr(kind, name) or hasattr(model, name):
            return None
        return f"AttributeError: '{kind.__name__}' object has no attribute '{name}'"


def _made_names(tree):
    """Returns the names that a file may create, and whether it may create others."""
    made, looked_up = set(), set()
    unnamed = False
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (looked_up if isinstance(node.ctx, ast.Load) else made).add(node.id)
        elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            made.add(node.attr)
        elif isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            looked_up.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            made.update(node.value.replace(".", " ").split())
        elif isinstance(node, ast.Global):
            made.update(node.names)
        elif isinstance(node, ast.keyword):
            made.add(node.arg)
        elif isinstance(node, (ast.alias, ast.FunctionDef)):
            looked_up.add(node.name)
        elif isinstance(node, ast.Call):
            unnamed = unnamed or not _is_named(node)
    return made, unnamed or bool(looked_up & _CREATES)


def _is_named(call):
    """Returns False for a call that may create a name which the file does not spell."""
    called = getattr(call.func, "id", getattr(call.func, "attr", None))
    if called not in _NAMED:
        return True
    given = call.args[_NAMED[called] : _NAMED[called] + 1]
    return bool(given) and isinstance(given[0], ast.Constant)


def _certain(statements):
    """Yields the expressions of statements that are certainly evaluated once the first is reached,
    if nothing before them fails.
    """
    for statement in statements:
        if isinstance(statement, (ast.Expr, ast.Assign, ast.AugAssign, ast.Return)):
            yield from _evaluated(statement)
        elif isinstance(statement, (ast.If, ast.While)):
            yield from _evaluated(statement.test)
        elif isinstance(statement, ast.For):
            yield from _evaluated(statement.iter)
        if any(isinstance(node, _LEAVES) for node in ast.walk(statement)):
            return


def _evaluated(node):
    """Yields an expression's parts without those that may be passed over."""
    if isinstance(node, _PASSED_OVER) or (isinstance(node, ast.Compare) and len(node.ops) > 1):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _evaluated(child)
