"""Precompiles <torch/extension.h> of a folder of headers: precompile.py HEADERS MADE.

Writes MADE/torch/extension.h.gch, a folder with one file for each set of flags, of which GCC takes
the one that fits. Runs outside of any sandbox and compiles nothing of a candidate's. Exit status 0
if all were made.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile

_NAME = "assay_precompiled"
# Macros depend on whether a compiler optimises, not on how far.
_VARIANTS = {"plain.gch": [], "optimised.gch": ["-O3"]}


class _Written(Exception):
    pass


def _keep(folder, *_, **__):
    with open(os.path.join(folder, "build.ninja"), encoding="utf-8") as file:
        raise _Written(file.read())


def loader_command():
    """Returns the compiler and the flags of torch's loader for a C++ source."""
    from torch.utils import cpp_extension

    cpp_extension._run_ninja_build = _keep
    cpp_extension.verify_ninja_availability = lambda: None
    with tempfile.TemporaryDirectory() as folder:
        try:
            cpp_extension.load_inline(_NAME, "", build_directory=folder)
        except _Written as written:
            text = str(written)
    compiler, flags = (
        re.search(rf"(?m)^{name} = (.*)$", text).group(1) for name in ("cxx", "cflags")
    )
    kept = [flag for flag in shlex.split(flags) if flag != f"-DTORCH_EXTENSION_NAME={_NAME}"]
    return shlex.split(compiler) + kept


def main(headers, made):
    """Precompiles all variants side by side; returns the exit status."""
    target = os.path.join(made, "torch", "extension.h.gch")
    os.makedirs(target)
    header = os.path.join(headers, "torch", "extension.h")
    common = loader_command() + ["-w", "-I", headers, "-x", "c++-header", header]
    running = [
        subprocess.Popen([*common, *flags, "-o", os.path.join(target, name)])
        for name, flags in _VARIANTS.items()
    ]
    return int(any([process.wait() for process in running]))


if __name__ == "__main__":
    # Neither the folder of this file nor the one where the user happens to be.
    sys.path[:] = [path for path in sys.path[1:] if path]
    sys.exit(main(*sys.argv[1:]))
