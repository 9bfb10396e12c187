"""Stands in for torch.compile and Inductor, where PyTorch has none: it traces a module by torch.fx
and writes a module of code as Inductor does, with kernels in strings, and a `call` that takes a
list. Its kernels are plain PyTorch, so that the code runs on any CPU.

Importing it makes `torch._inductor` importable; that brings torch.compile.
"""

import importlib.machinery
import os
import sys
import types

_KERNEL = """
{name} = async_compile.triton('{name}', '''
import torch
def {name}({arguments}):
    return {expression}
''', device_str='cpu')
"""
_MODULE = """# AOT ID: ['0_inference']
import torch
import builtins
from torch import device


class AsyncCompile:
    def triton(self, name, text, device_str='cpu'):
        space = {{}}
        exec(text, space)
        return space[name]


async_compile = AsyncCompile()
_tensor_constant0 = None
{kernels}

def call(args):
    {names}, = args
    args.clear()
{body}
    return ({results}, )


def benchmark_compiled_module(times=10, repeat=10):
    from torch._inductor.utils import print_performance
    return print_performance(lambda: call([]), times=times, repeat=repeat)


if __name__ == "__main__":
    from torch._inductor.wrapper_benchmark import compiled_module_main
    compiled_module_main('None', benchmark_compiled_module)
"""


class Unsupported(Exception):
    """As torch._dynamo.exc has it."""


class PyCodeCache:
    """As torch._inductor.codecache has it."""

    @classmethod
    def load_by_key_path(cls, key, path, linemap=None, attrs=None):
        module = types.ModuleType(key)
        module.__file__ = path
        with open(path, encoding="utf-8") as file:
            exec(compile(file.read(), path, "exec"), module.__dict__)
        for name, value in (attrs or {}).items():
            setattr(module, name, value)
        return module


def _expression(node, names):
    import torch

    def text(value):
        if isinstance(value, torch.fx.Node):
            return names[value]
        if isinstance(value, (list, tuple)):
            return f"[{', '.join(map(text, value))}]"
        return repr(value)

    given = [text(each) for each in node.args]
    given += [f"{key}={text(value)}" for key, value in node.kwargs.items()]
    if node.op == "call_method":
        return f"{given[0]}.{node.target}({', '.join(given[1:])})"
    module = {"_operator": "operator"}.get(node.target.__module__, node.target.__module__)
    place = module if module and module.startswith("torch") else "torch"
    if module == "operator":
        return f"__import__('operator').{node.target.__name__}({', '.join(given)})"
    return f"{place}.{node.target.__name__}({', '.join(given)})"


def _generate(traced, library):
    """Returns the text of a module that computes a traced one, and what each argument of its `call`
    is: the path of a tensor of the module, or the number of an input. Tensors of the module come
    first.
    """
    import torch

    names, members, inputs, kernels, body = {}, [], [], "", ""
    for node in traced.graph.nodes:
        names[node] = node.name
        if node.op == "get_attr":
            members.append((node.name, node.target))
        elif node.op == "placeholder":
            inputs.append((node.name, len(inputs)))
        elif node.op in ("call_function", "call_method"):
            used = ", ".join(names[each] for each in node.all_input_nodes)
            kernel = f"triton_poi_fused_{node.name}"
            if library:
                body += f"    {node.name} = torch.ops.aten.relu.default({used})\n"
                continue
            kernels += _KERNEL.format(
                name=kernel, arguments=used, expression=_expression(node, names)
            )
            body += f"    {node.name} = {kernel}({used})\n"
        elif node.op == "output":
            found = node.args[0]
            results = found if isinstance(found, (list, tuple)) else [found]
            assert all(isinstance(each, torch.fx.Node) for each in results)
    arguments = members + inputs
    text = _MODULE.format(
        kernels=kernels,
        names=", ".join(name for name, _ in arguments),
        body=body.rstrip("\n"),
        results=", ".join(names[each] for each in results),
    )
    return text, [place for _, place in arguments]


def fake_compile(model, dynamic=None, mode=None, fullgraph=False):
    """As torch.compile. What a module's class says of itself makes it fail in some way: FAULT is
    "break", "constant", "library", or "two".
    """
    import torch

    fault = getattr(model, "FAULT", "")
    if fault == "break":
        raise Unsupported("Data-dependent branching\n  Explanation: Detected a branch.\n  Hint: no")
    traced = torch.fx.symbolic_trace(model)
    text, places = _generate(traced, fault == "library")
    folder = os.environ["TORCHINDUCTOR_CACHE_DIR"]
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "generated.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    constants = {"_tensor_constant0": torch.zeros(1)} if fault == "constant" else {}
    loaded = PyCodeCache.load_by_key_path("generated", path, attrs=constants)
    call = loaded.call

    def member(path):
        value = model
        for name in path.split("."):
            value = getattr(value, name)
        return value

    def compiled(*given):
        passed = [given[each] if isinstance(each, int) else member(each) for each in places]
        results = call(list(passed))
        if fault == "two":
            call(list(passed))
        single = not isinstance(list(traced.graph.nodes)[-1].args[0], (list, tuple))
        return results[0] if single else tuple(results)

    return compiled


class _Finder:
    """Makes torch._inductor and its codecache importable."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in ("torch._inductor", "torch._inductor.codecache"):
            return importlib.machinery.ModuleSpec(name, _Finder, is_package=True)
        return None

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        import torch

        torch.compile = fake_compile
        if module.__name__.endswith("codecache"):
            module.PyCodeCache = PyCodeCache


sys.meta_path.append(_Finder)
