"""Mines a problem: compiles its Model by torch.compile on the device that the settings name, and
wraps the code that is generated as a candidate.

Runs in a sandbox of its own, as the builder does. Reads problem/problem.py, and
problem/settings.json with "set", "device", "precision" and "mode". Writes tmp/mined.json with
"python_code", "entry_point", "triton_code", "original_triton_code", "kernels", "libraries" and
"versions"; or with "refusal", a sentence; or with "problem" or "environment", sentences on a
failure of the problem or of this machine. Exit status 0 if it is written.
"""

import ast
import importlib
import json
import os
import sys


def main():
    """Writes the answer, and ends the process."""
    root = os.environ.get("ASSAY_HOST_ROOT", "/")
    from assay_host import failure, inductor
    from assay_host.failure import Failure

    inductor.prepare(root)
    try:
        answer = _mine(root)
    except inductor.Refusal as refusal:
        answer = {"refusal": str(refusal)}
    except Failure as error:
        kind = "environment" if error.number == failure.ENVIRONMENT else "problem"
        answer = {kind: error.message}
    except MemoryError:
        answer = {"refusal": "compiling it takes more memory than it may have"}
    path = os.path.join(root, "tmp", "mined.json")
    with open(path + ".unfinished", "w", encoding="utf-8") as file:
        json.dump(answer, file)
    os.replace(path + ".unfinished", path)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # destructors of a device's libraries may take seconds


def _mine(root):
    from assay_host import failure
    from assay_host.failure import Failure

    try:
        import torch
    except ImportError as error:
        raise Failure(
            failure.ENVIRONMENT, f"PyTorch cannot be imported by {sys.executable}: {error}"
        ) from error
    from assay_host import device, host, inductor, inductor_source, mined_candidate, problem

    settings = host.read_settings(os.path.join(root, "problem", "settings.json"))
    path = os.path.join(root, "problem", "problem.py")
    mode = settings["mode"]
    inductor.require()
    device.start(settings)
    torch.set_grad_enabled(False)

    text = mined_candidate.pinned(
        problem.read_source(path).decode("utf-8", "replace"), settings.get("set", {})
    )
    tree = problem.apply_settings(problem.parse(path), settings.get("set", {}))
    module = problem.execute(tree, path)
    placement = device.Placement(settings)
    # One seed, so that the same file gives the same code in every call.
    problem.seed_everything(0)
    made = problem.init_inputs(module, path)
    problem.seed_everything(0)
    model = placement.module(problem.construct(module, made, path), path)
    problem.seed_everything(0)
    drawn = problem.inputs(module, model, path)
    arguments = _placed(drawn, placement)
    call, result = inductor.compile_and_call(model, arguments, mode)
    placement.finish()

    constructor = mined_candidate.constructor_text(text, module)
    if not _constructs(constructor, module.class_name, made, model):
        constructor = mined_candidate.constructor_text(text, module, with_forward=True)
    versions = _versions()
    how = f"PyTorch {torch.__version__}, mode {mode}"
    candidate = mined_candidate.wrap(constructor, module, model, arguments, call, result, how)
    with open(call.module.__file__, encoding="utf-8") as file:
        original = file.read()
    facts = inductor_source.facts(ast.parse(original))
    return {
        "python_code": text,
        "entry_point": module.class_name,
        "triton_code": candidate,
        "original_triton_code": original,
        "kernels": facts.kernels,
        "libraries": facts.libraries,
        "versions": versions,
    }


def _placed(drawn, placement):
    """Returns the arguments on the device, each tensor in memory of its own."""
    from assay_host import structure

    leaves = []
    templates = [structure.flatten(value, str(i), leaves) for i, value in enumerate(drawn)]
    copies = [placement.copy(value) for _, value in leaves]
    return [structure.rebuild(template, copies) for template in templates]


def _constructs(text, class_name, made, model):
    """Returns True if the text alone constructs a module with the tensors of `model`."""
    import types

    from assay_host import weights

    alone = types.ModuleType("constructor")
    sys.modules["constructor"] = alone
    try:
        exec(compile(text, "constructor.py", "exec"), alone.__dict__)  # the user's own file
        built = getattr(alone, class_name)(*made)
        shapes = [
            {name: tensor.shape for name, tensor in weights.every_tensor(each).items()}
            for each in (built, model)
        ]
    except Exception:
        return False
    return shapes[0] == shapes[1]


def _versions():
    """Returns the versions of what generated the code."""
    versions = {}
    for name in ("torch", "triton"):
        try:
            versions[name] = str(importlib.import_module(name).__version__)
        except (ImportError, AttributeError):
            pass
    return versions
