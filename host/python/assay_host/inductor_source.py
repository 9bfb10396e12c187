"""Text that Inductor generated: its kernels, its calls of libraries, and the parts of it that do
not compute. Pure: nothing is imported or run.
"""

import ast
import typing

# Of a generated module: programs that time it, and what they alone use.
_TIMING = ("benchmark_compiled_module", "get_args")


class Facts(typing.NamedTuple):
    kernels: list  # names of kernels that the code brings along
    makers: list  # functions that make them: "triton", "cpp_pybinding"
    libraries: list  # calls of operators that PyTorch's libraries compute: "extern_kernels.mm"


def facts(tree):
    """Returns the Facts of a generated module's syntax tree."""
    kernels, makers, libraries = [], set(), []
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
            place, _, maker = _dotted(statement.value.func).rpartition(".")
            if place == "async_compile":
                makers.add(maker)
                kernels += [name.id for name in statement.targets if isinstance(name, ast.Name)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = _dotted(node.func)
            if _is_library(name) and name not in libraries:
                libraries.append(name)
    return Facts(kernels, sorted(makers), sorted(libraries))


def _dotted(node):
    """Returns "torch.ops.aten.mm" of such an expression; an empty string of any other."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join(reversed([*parts, node.id]))


def _is_library(name):
    """Operators of torch.ops.inductor alone handle memory and seeds."""
    if name.startswith("torch.ops."):
        return not name.startswith("torch.ops.inductor.")
    return name.startswith(("extern_kernels.", "aten."))


def constants(tree, module):
    """Returns the names that the text leaves empty and the module has: constants that were put in
    beside it.
    """
    empty = [
        name.id
        for statement in tree.body
        if isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Constant)
        and statement.value.value is None
        for name in statement.targets
        if isinstance(name, ast.Name)
    ]
    return [name for name in empty if getattr(module, name, None) is not None]


def computing(text):
    """Returns the text without the programs that time it."""
    tree = ast.parse(text)
    used = [
        node.id
        for statement in tree.body
        if not _is_timing(statement) and not is_main(statement)
        for node in ast.walk(statement)
        if isinstance(node, ast.Name)
    ]
    dropped = [
        statement
        for statement in tree.body
        if is_main(statement) or (_is_timing(statement) and statement.name not in used)
    ]
    return without(text, tree, dropped)


def _is_timing(statement):
    return isinstance(statement, ast.FunctionDef) and statement.name in _TIMING


def is_main(statement):
    """Returns True for `if __name__ == "__main__":`."""
    return (
        isinstance(statement, ast.If)
        and isinstance(statement.test, ast.Compare)
        and isinstance(statement.test.left, ast.Name)
        and statement.test.left.id == "__name__"
    )


def without(text, tree, dropped):
    """Returns the text without these statements of its tree. A class that loses all of its body
    gets `pass`.
    """
    lines = text.split("\n")
    for parent in ast.walk(tree):
        body = getattr(parent, "body", None)
        if not isinstance(body, list):
            continue
        gone = [statement for statement in body if statement in dropped]
        for statement in gone:
            decorators = getattr(statement, "decorator_list", [])
            first = min([statement.lineno, *(each.lineno for each in decorators)])
            last = statement.end_lineno
            while last < len(lines) and not (lines[last] or "").strip():
                last += 1
            lines[first - 1 : last] = [None] * (last - first + 1)
        if gone and len(gone) == len(body) and not isinstance(parent, ast.Module):
            lines[gone[0].lineno - 1] = " " * gone[0].col_offset + "pass\n\n"
    return "\n".join(line for line in lines if line is not None).strip("\n") + "\n"


def bound_names(tree):
    """Returns the names that a module's statements bind at top level, each with the text of its
    meaning: two modules may share a name that means the same in both.
    """
    names = {}
    for statement in tree.body:
        if isinstance(statement, ast.Import):
            for each in statement.names:
                name = each.asname or each.name.split(".")[0]
                names[name] = f"import {each.name if each.asname else name}"
        elif isinstance(statement, ast.ImportFrom):
            for each in statement.names:
                source = f"{'.' * statement.level}{statement.module or ''}"
                names[each.asname or each.name] = f"from {source} import {each.name}"
        elif isinstance(statement, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            names[statement.name] = ast.dump(statement)
        else:
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    names[node.id] = ast.dump(statement)
    # `import torch.nn as nn` and `from torch import nn` are one.
    return {
        name: meaning.replace("from torch import ", "import torch.")
        for name, meaning in names.items()
    }


def collisions(one, other):
    """Returns the names that mean one thing in one module and another thing in the other."""
    mine, theirs = bound_names(one), bound_names(other)
    return sorted(name for name in mine.keys() & theirs.keys() if mine[name] != theirs[name])
