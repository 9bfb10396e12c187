"""The builder: imports a candidate and constructs ModelNew once, so that its extensions get
compiled, and packs them.

Runs in a builder's sandbox, before any host. Exit status 0, or 1 with one clear message on stderr:
what the candidate and its compilers print on the way is dropped. Writes tmp/extensions.tar, empty
where nothing was compiled.
"""

import os
import sys


def main():
    """Runs the build with stdout and stderr turned away; returns the exit status."""
    own_stderr = os.dup(2)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    message = _build()
    if message is None:
        return 0
    os.write(own_stderr, (message + "\n").encode("utf-8", "replace"))
    return 1


def _build():
    """None, or what went wrong."""
    root = os.environ.get("ASSAY_HOST_ROOT", "/")
    try:
        import torch
    except ImportError as error:
        return f"PyTorch cannot be imported by {sys.executable}: {error}"
    from assay_host import candidate, extensions, failure, host

    settings = host.read_settings(os.path.join(root, "problem", "settings.json"))
    host.set_threads(torch, settings)
    torch.set_grad_enabled(False)
    extensions.prepare(root)
    path = os.path.join(root, "candidate", "candidate.py")
    try:
        record = candidate.read_record(os.path.join(root, "candidate", "init.pickle"))
        seed = int(settings.get("weights_seed", 0))
        module = candidate.import_file(path, settings.get("set", {}), seed)
        candidate.construct(module, record, seed, path)
        extensions.pack(root, os.path.join(root, "tmp", "extensions.tar"))
    except failure.Failure as error:
        return error.message
    except OSError as error:
        return f"the extensions cannot be packed: {error}"
    return None
