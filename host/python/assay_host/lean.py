"""Builds torch's extensions against a part of PyTorch's headers first: parsing all of them is most
of a build's time.

The part lies in folders of headers under PyTorch's names, which include some of the real ones and
come first in the compilers' search. A build that fails so is made again with the real headers
alone.
"""

import contextlib
import os
import re

from assay_host import extensions

LEAN, FULL = "lean", "full"
# Parts that CUDA sources get only if they have such words: each costs seconds. A folder of a part's
# name brings it in.
_PARTS = {
    "binding": re.compile(rb"PYBIND11|pybind11|\bpy::"),
    "lists": re.compile(
        rb"\b(cat|concat|index|index_put_)\(|\b(indexing|Slice)\b|device_of|ListRef|IValue"
    ),
    "context": re.compile(rb"globalContext|\bcout\b|\bcerr\b|TensorArg|InferenceMode"),
    "factories": re.compile(rb"requires_grad|\btensor\(|make_variable"),
    "libraries": re.compile(
        rb"cublas|cusparse|cusolver|BlasHandle|DeviceProperties|AT_CUDA|warp_size|canDeviceAccess"
    ),
}
# Sources with such words need more than the part has: a try would be a waste.
_LEFT_OUT = re.compile(
    rb"TORCH_LIBRARY|torch/(script|custom_class)\.h|torch::(nn|optim|jit|data|autograd|serialize)::"
)


def prefer(root, folders):
    """Makes torch's loader search `folders` (as in PATH) before PyTorch's headers. Each build is
    noted by extensions.note_headers().
    """
    if not folders:
        return
    from torch.utils import cpp_extension

    run_ninja = getattr(cpp_extension, "_run_ninja_build", None)
    if run_ninja is None:
        return

    def run_lean_first(build_directory, *arguments, **keywords):
        search = _search(folders, build_directory)
        if search is not None:
            try:
                with _environment("CPATH", search):
                    run_ninja(build_directory, *arguments, **keywords)
                extensions.note_headers(root, LEAN)
                return
            except RuntimeError:
                pass
        run_ninja(build_directory, *arguments, **keywords)
        extensions.note_headers(root, FULL)

    cpp_extension._run_ninja_build = run_lean_first


def _search(folders, build_directory):
    """Returns the folders to search first for these sources; None if they need all headers."""
    try:
        sources = extensions.read_sources(build_directory)
    except (OSError, UnicodeDecodeError):
        return None
    if any(_LEFT_OUT.search(text) for _, text in sources):
        return None
    cuda = b"\n".join(text for rule, text in sources if rule == "cuda_compile")
    parts = [part for part, words in _PARTS.items() if words.search(cuda)]
    lean = folders.split(":")[-1]
    return ":".join([os.path.join(lean, "parts", part) for part in parts] + [folders])


@contextlib.contextmanager
def _environment(name, value):
    """Puts `value` before what the variable holds, for a while."""
    before = os.environ.get(name)
    os.environ[name] = value if before is None else f"{value}:{before}"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = before
