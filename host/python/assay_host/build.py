"""The builder: imports a candidate and constructs ModelNew once, so that its extensions are
compiled, and packs them. On a device it also calls it once, for code that the first call compiles.
With the setting `without_device` it compiles for a device that it does not see; with
`imports_alone` besides it constructs nothing, so that it needs no problem.

Runs in a builder's sandbox, before any host. Exit status 0, or one of those below with one clear
message on stderr; other output of the candidate and its compilers is dropped. Writes
tmp/extensions.tar, empty if nothing was compiled. A call that fails is left to gate 1: status 0,
with the message.
"""

import os
import signal
import sys
import time

# Exit codes of a build that failed (src/builders/python_build.cc).
_FAILED, _EXTENSION, _NOT_HERE = 1, 40, 41

_CALL_S_MAX = 150  # with what is compiled and tuned in it
_POLL_S = 0.01


def main():
    """Runs the build with stdout and stderr turned away; returns the exit status."""
    own_stderr = os.dup(2)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)

    def say(message):
        os.write(own_stderr, (message + "\n").encode("utf-8", "replace"))

    from assay_host import host

    root = os.environ.get("ASSAY_HOST_ROOT", "/")
    settings = host.read_settings(os.path.join(root, "problem", "settings.json"))
    if settings.get("device", "cpu") == "cpu" or settings.get("without_device"):
        return _build(root, settings, say)
    # The call may end its process, or never end: what was packed before it stands.
    child = os.fork()
    if child == 0:
        os._exit(_build(root, settings, say))
    return _await(child, _product(root), say)


def _product(root):
    return os.path.join(root, "tmp", "extensions.tar")


def _await(child, product, say):
    """Waits for the build's process. Returns its exit status, 0 if it packed; dies of its signal if
    it packed nothing.
    """
    packed_s = None
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid == child:
            break
        if packed_s is None and os.path.exists(product):
            packed_s = time.monotonic()
        if packed_s is not None and time.monotonic() - packed_s > _CALL_S_MAX:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            say(f"in the builder, its first call takes longer than {_CALL_S_MAX} s")
            return 0
        time.sleep(_POLL_S)
    if os.path.exists(product):
        if os.WIFSIGNALED(status):
            say(f"in the builder, its first call ends with signal {os.WTERMSIG(status)}")
        return 0
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    return os.WEXITSTATUS(status)


def _build(root, settings, say):
    """Builds and packs. Returns the exit status."""
    try:
        import torch
    except ImportError as error:
        say(f"PyTorch cannot be imported by {sys.executable}: {error}")
        return _FAILED
    from assay_host import candidate, device, extensions, failure, host, lean, missing_names, record
    from assay_host import rehearsal

    host.set_threads(torch, settings)
    torch.set_grad_enabled(False)
    extensions.prepare(root)
    path = candidate.path_in(os.path.join(root, "candidate"))
    extensions.prefer_ptxas_of_inductor(path)
    without_device = bool(settings.get("without_device"))
    try:
        if without_device:
            failure.cuda_is_here = True  # it will be, where the file is judged
        else:
            device.start(settings)
        lean.prefer(root, os.environ.get("ASSAY_LEAN_HEADERS", ""))
        # What was built for another size of the problem.
        if extensions.unpack(os.path.join(root, "candidate", "extensions.tar"), root):
            extensions.skip_finished_builds()
        seed = int(settings.get("weights_seed", 0))
        if settings.get("imports_alone"):
            candidate.import_file(path, settings.get("set", {}), seed)
            extensions.pack(root, _product(root))
            return 0
        made = record.read(os.path.join(root, "candidate", "init.pickle"))
        torch.set_default_dtype(made["default_dtype"])
        module = candidate.import_file(path, settings.get("set", {}), seed)
        model = candidate.construct(module, made, seed, path)
        place = device.CPU if without_device else device.name(settings)
        if place != device.CPU:
            model = device.move(model, failure.CANDIDATE_LOAD, path)
        if place == device.CPU and not without_device and extensions.hold_cuda(root):
            say(failure.needs_cuda("it compiles CUDA sources"))
            return _NOT_HERE
        missing = missing_names.find(model, path)
        if missing:
            say(f"forward fails: {os.path.basename(path)} {missing}")
            return _FAILED
        extensions.pack(root, _product(root))
        if place == device.CPU:
            return 0
        inputs = rehearsal.read_inputs(os.path.join(root, "candidate", "inputs.json"))
    except failure.Failure as error:
        say(error.message)
        if error.number == failure.CANDIDATE_NOT_HERE:
            return _NOT_HERE
        return _EXTENSION if error.of_extension else _FAILED
    except OSError as error:
        say(f"the extensions cannot be packed: {error}")
        return _FAILED
    try:
        torch.set_grad_enabled(False)  # foreign code may have changed it
        rehearsal.call(model, inputs, made, place, torch.cuda.synchronize)
    except BaseException as error:
        say(rehearsal.explain(error, path))
    try:
        extensions.pack(root, _product(root))
    except OSError as error:
        say(f"the extensions cannot be packed: {error}")
    return 0
