"""Wraps code that Inductor generated as a candidate: a class ModelNew with the reference's
constructor, whose forward calls that code.

The code takes a list of tensors. Which input, parameter or buffer each one is, shows in a call: the
same tensor, or the same memory.
"""

import ast
import inspect
import keyword
import math

import torch

from assay_host import inductor_source, problem, structure
from assay_host.inductor import Refusal

_HEADING = '''# forward of this class is code that torch.compile generated for these sizes: {how}.
# The constructor is the reference's, so that weights are loaded by name.
'''
_GUARD = '''        if {expression} != {value}:
            raise ValueError("this code was generated for {expression} = {value}")
'''
# Functions of Inductor's that make kernels of what Triton's cache holds.
_MAKERS = ("triton", "multi_kernel")


def pinned(text, settings):
    """Returns a problem's text with the values of --set in place of its own. `settings`: NAME ->
    Python literal.
    """
    if not settings:
        return text
    tree = problem.parse_text(text, "problem.py")
    data = text.encode()
    starts = [0]
    for line in data.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    values = [
        (statement.value, settings[name])
        for statement in tree.body
        for name in problem.assigned_names(statement)
        if name in settings
    ]
    for node, value in sorted(values, key=lambda each: each[0].lineno, reverse=True):
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        data = data[:begin] + value.strip().encode() + data[end:]
    wanted = problem.apply_settings(problem.parse_text(text, "problem.py"), settings)
    try:
        made = problem.parse_text(data.decode(), "problem.py")
        if ast.dump(made) == ast.dump(wanted):
            return data.decode()
    except SyntaxError:
        pass
    return ast.unparse(wanted) + "\n"


def constructor_text(text, module, with_forward=False):
    """Returns what of a problem's text constructs its Model: without its inputs and, unless asked
    for, without `forward` of its module classes.
    """
    tree = ast.parse(text)
    dropped = [
        statement
        for statement in tree.body
        if inductor_source.is_main(statement)
        or getattr(statement, "name", "") in ("get_inputs", "get_init_inputs")
    ]
    for statement in tree.body:
        value = getattr(module, getattr(statement, "name", ""), None)
        if with_forward or not isinstance(statement, ast.ClassDef):
            continue
        if isinstance(value, type) and issubclass(value, torch.nn.Module):
            dropped += [each for each in statement.body if getattr(each, "name", "") == "forward"]
    return inductor_source.without(text, tree, dropped)


def leaves_of(value, expression):
    """Yields (expression, leaf) of each tensor and number in an argument of forward."""
    if structure.is_argument(value):
        yield expression, value
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from leaves_of(item, f"{expression}[{index}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from leaves_of(item, f"{expression}[{key!r}]")


def argument_names(forward, count, taken):
    """Returns names for forward's first `count` arguments: its own, where they can be used."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    try:
        parameters = inspect.signature(forward).parameters.values()
    except (TypeError, ValueError):
        parameters = ()
    own = [each.name for each in parameters if each.kind in kinds][:count]
    if len(own) < count or set(own) & set(taken):
        return [f"input_{index}" for index in range(count)]
    return own


def members_of(model):
    """Yields (expression, tensor) of each parameter, buffer and other tensor of a module."""
    for path, part in model.named_modules(remove_duplicate=False):
        place = _place(model, path)
        tensors = {**part._parameters, **part._buffers}
        tensors.update({name: value for name, value in vars(part).items() if name not in tensors})
        for name, value in tensors.items():
            if isinstance(value, torch.Tensor):
                yield _member(place, part, name), value


def _place(model, path):
    """Returns the expression of a module within another: "self.layers[0]"."""
    expression, here = "self", model
    for name in path.split(".") if path else []:
        expression = _member(expression, here, name)
        here = here._modules[name]
    return expression


def _member(place, parent, name):
    if name.isidentifier() and not keyword.iskeyword(name):
        return f"{place}.{name}"
    lists = (torch.nn.Sequential, torch.nn.ModuleList, torch.nn.ParameterList)
    if isinstance(parent, lists) and name.isdigit():
        return f"{place}[{name}]"
    return f"getattr({place}, {name!r})"


def _is_same(one, other):
    """Returns True if two tensors are one, or the same elements of the same memory."""
    return one is other or (
        one.dtype == other.dtype
        and one.shape == other.shape
        and one.stride() == other.stride()
        and one.device == other.device
        and one.numel() > 0
        and one.data_ptr() == other.data_ptr()
    )


def _memory(tensor):
    """Returns what tells the memory of a tensor from that of others, and its dtype."""
    # PyTorch 1 has storages with a dtype alone.
    storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()
    return tensor.device, tensor.dtype, storage.data_ptr()


class Wrapping:
    """The expressions of a module's values in its forward."""

    def __init__(self, model, arguments, names, global_tensors):
        self._inputs = [
            leaf for name, value in zip(names, arguments) for leaf in leaves_of(value, name)
        ]
        known = [each for each in self._inputs if isinstance(each[1], torch.Tensor)]
        self._known = [*known, *members_of(model), *global_tensors]
        self._numbers = [each for each in self._inputs if not isinstance(each[1], torch.Tensor)]
        self._used = set()

    def argument(self, number, value):
        """Returns the expression of an argument of the code. Raises Refusal."""
        if isinstance(value, torch.Tensor):
            for expression, tensor in self._known:
                if _is_same(tensor, value):
                    return expression
            if value.dim() == 0 and value.device.type == "cpu":
                return self._from_number(number, value.item(), value.dtype)
        elif isinstance(value, (bool, int, float)):
            return self._from_number(number, value, None)
        raise Refusal(f"argument {number} of its code is no input, parameter or buffer")

    def _from_number(self, number, value, dtype):
        """A number that PyTorch passes on, as itself or as a tensor."""
        equal = [name for name, each in self._numbers if each == value]
        if len(equal) != 1:
            raise Refusal(f"argument {number} of its code is no input, parameter or buffer")
        self._used.add(equal[0])
        return equal[0] if dtype is None else f"torch.tensor({equal[0]}, dtype={dtype})"

    def guards(self):
        """Returns the lines that refuse other numbers than those the code was generated for."""
        lines = ""
        for expression, value in self._numbers:
            if expression in self._used:
                continue
            if isinstance(value, float) and not math.isfinite(value):
                raise Refusal(f"its input {expression} is {value}")
            lines += _GUARD.format(expression=expression, value=repr(value))
        return lines

    def result(self, value, results):
        """Returns the expression of a result of the module. Raises Refusal."""
        if isinstance(value, torch.Tensor):
            return self._tensor(value, results)
        if isinstance(value, (list, tuple)):
            parts = [self.result(item, results) for item in value]
            if isinstance(value, list):
                return f"[{', '.join(parts)}]"
            return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
        if type(value) is dict:
            parts = [f"{key!r}: {self.result(item, results)}" for key, item in value.items()]
            return f"{{{', '.join(parts)}}}"
        if value is None or isinstance(value, (bool, int, str)):
            return repr(value)
        if isinstance(value, float) and math.isfinite(value):
            return repr(value)
        raise Refusal(f"it returns a value of the type {type(value).__name__}")

    def _tensor(self, value, results):
        tensors = [
            (f"outputs[{index}]", each)
            for index, each in enumerate(results)
            if isinstance(each, torch.Tensor)
        ]
        tensors += self._known
        # An output itself goes before one that lies in the same memory.
        for expression, each in tensors:
            if each is value:
                return expression
        for expression, each in tensors:
            if _is_same(each, value):
                return expression
        for expression, each in tensors:
            if value.numel() > 0 and _memory(each) == _memory(value):
                view = f"{tuple(value.shape)}, {tuple(value.stride())}, {value.storage_offset()}"
                return f"{expression}.as_strided({view})"
        raise Refusal("one of its results is no result of its code")


def global_tensors(module):
    """Yields (name, tensor) of the tensors that a problem's file has at top level."""
    for name, value in vars(module).items():
        if isinstance(value, torch.Tensor):
            yield name, value


def wrap(text, module, model, arguments, call, result, how):
    """Returns the candidate's text. `text`: the reference's constructor_text(); `call`: the
    inductor.Call that gave the model's `result`; `how`: words on the compiler. Raises Refusal.
    """
    with open(call.module.__file__, encoding="utf-8") as file:
        generated = inductor_source.computing(file.read())
    tree = ast.parse(generated)
    constants = inductor_source.constants(tree, call.module)
    if constants:
        raise Refusal(f"its code takes constants from outside of its text: {', '.join(constants)}")
    facts = inductor_source.facts(tree)
    if not facts.kernels:
        raise Refusal("its code has no kernel of its own: it only calls PyTorch's libraries")
    others = [maker for maker in facts.makers if maker not in _MAKERS]
    if others:
        raise Refusal(
            f"its kernels are made by async_compile.{others[0]}, which needs a compiler whenever "
            "the code is loaded, and a candidate's host has none: only Triton's kernels are mined"
        )
    reference = ast.parse(text)
    both = inductor_source.collisions(reference, tree)
    if both:
        raise Refusal(f"its code uses names of the problem's file: {', '.join(both)}")
    taken = set(inductor_source.bound_names(tree)) | set(inductor_source.bound_names(reference))
    names = argument_names(model.forward, len(arguments), taken | {"self", "outputs", "call"})
    wrapping = Wrapping(model, arguments, names, list(global_tensors(module)))
    passed = [wrapping.argument(number, value) for number, value in enumerate(call.arguments)]
    returned = wrapping.result(result, call.results)
    signature = ", ".join(["self", *names])
    lines = [
        _HEADING.format(how=how),
        text,
        "\n\n",
        generated,
        "\n\n",
        f"class ModelNew({module.class_name}):\n",
        f"    def forward({signature}):\n",
        wrapping.guards(),
        f"        outputs = call([{', '.join(passed)}])\n",
        f"        return {returned}\n",
    ]
    made = "".join(lines)
    compile(made, "candidate.py", "exec", dont_inherit=True)
    return made
