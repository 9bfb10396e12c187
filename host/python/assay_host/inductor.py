"""The code that torch.compile's compiler, Inductor, generates for a call of a module, and the
values that this code is called with.

It rests on three private names of PyTorch's, the same from 2.1 to 2.11: each generated module is
loaded by torch._inductor.codecache.PyCodeCache.load_by_key_path, and has a function `call`, which
takes a list of tensors and returns the results of one graph. All else is public.
"""

import os
import typing

from assay_host import failure
from assay_host.failure import Failure

# --modes; None: PyTorch's own choice. Modes that record CUDA graphs generate no other code.
MODES = {"default": None, "max-autotune-no-cudagraphs": "max-autotune-no-cudagraphs"}

_SETTINGS = {
    # In this process: a pool of helpers would take seconds to start and to end.
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    # The code is wanted, and a cache may have none.
    "TORCHINDUCTOR_FX_GRAPH_CACHE": "0",
}


class Refusal(Exception):
    """The module cannot be mined; the text says why."""


class Call(typing.NamedTuple):
    """One call of generated code."""

    module: typing.Any
    arguments: list
    results: list


def prepare(root):
    """Settings of Inductor and Triton, before PyTorch is imported."""
    os.environ.update(_SETTINGS)
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(root, "tmp", "inductor")
    os.environ["TRITON_CACHE_DIR"] = os.path.join(root, "tmp", "triton")


def require():
    """Returns PyTorch's cache of generated modules. Raises Failure(ENVIRONMENT)."""
    import torch

    try:
        from torch._inductor.codecache import PyCodeCache
    except ImportError:
        PyCodeCache = None
    if PyCodeCache is None or not hasattr(torch, "compile"):
        lacks = "has no torch.compile"
    elif not isinstance(PyCodeCache.__dict__.get("load_by_key_path"), classmethod):
        lacks = "keeps the code that torch.compile generates where Assay cannot read it"
    else:
        return PyCodeCache
    raise Failure(
        failure.ENVIRONMENT,
        f"PyTorch {torch.__version__} {lacks}: name a Python with PyTorch 2.4 to 2.11 with "
        "--python or ASSAY_PYTHON",
    )


class Capture:
    """Hears the calls of generated code within a `with`, once listen() was called. Raises
    Failure(ENVIRONMENT) if this PyTorch has no compiler.
    """

    def __init__(self):
        self._cache = require()
        self._load = self._cache.__dict__["load_by_key_path"]
        self._watched = set()
        self._listens = False
        self.calls = []

    def __enter__(self):
        load = self._load.__func__

        def watched_load(cache, *arguments, **keywords):
            module = load(cache, *arguments, **keywords)
            self._watch(module)
            return module

        self._cache.load_by_key_path = classmethod(watched_load)
        return self

    def __exit__(self, *_):
        self._cache.load_by_key_path = self._load

    def listen(self):
        self._listens = True

    def _watch(self, module):
        call = getattr(module, "call", None)
        if not callable(call) or id(module) in self._watched:
            return
        self._watched.add(id(module))

        def watched(arguments, *more, **keywords):
            if not self._listens:
                return call(arguments, *more, **keywords)
            given = list(arguments)  # the code empties the list
            results = call(arguments, *more, **keywords)
            self.calls.append(Call(module, given, list(results)))
            return results

        module.call = watched


def _compile_in_threads():
    """Tuning compiles tens of kernels: in threads of this process, as many as it has processors. A
    pool of processes is started only if the configuration asks for more than one.
    """
    try:
        from torch._inductor import config
    except ImportError:
        return
    config.compile_threads = 1
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = str(len(os.sched_getaffinity(0)))


def compile_and_call(model, arguments, mode):
    """Compiles the model for these arguments, and calls it once more. Returns the one call of the
    generated code, and the model's result. Raises Refusal, and Failure(ENVIRONMENT).
    """
    import torch

    _compile_in_threads()
    with Capture() as capture:
        try:
            compiled = torch.compile(model, dynamic=False, mode=MODES[mode], fullgraph=True)
            compiled(*arguments)
            capture.listen()
            result = compiled(*arguments)
        except Exception as error:
            raise Refusal(_explained(error)) from error
    if not capture.calls:
        raise Refusal("torch.compile generates no code for it")
    if len(capture.calls) > 1:
        raise Refusal(f"it has {len(capture.calls)} graphs: only a module of one graph is mined")
    return capture.calls[0], result


def _explained(error):
    """Returns why torch.compile failed, in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if type(error).__name__ == "Unsupported":
        why = [line for line in lines if line.startswith("Explanation:")]
        said = "; ".join([*lines[:1], *(line[len("Explanation:") :].strip() for line in why[:1])])
        return f"torch.compile breaks its graph: {said}"[: failure.TEXT_LENGTH_MAX]
    # The first line then names the backend alone.
    if len(lines) > 1 and lines[0].endswith("raised:"):
        return f"torch.compile cannot compile it: {lines[1]}"[: failure.TEXT_LENGTH_MAX]
    return f"torch.compile cannot compile it: {failure.describe_exception(error)}"
