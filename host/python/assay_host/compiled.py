"""The baselines that torch.compile makes."""

import os

import torch

from assay_host import failure
from assay_host.failure import Failure


# torch.compile's modes by baseline; None: its own choice.
MODES = {
    "compiled": None,
    "compiled-reduce-overhead": "reduce-overhead",
    "compiled-max-autotune": "max-autotune",
}


# On a GPU some modes record CUDA graphs around one copy of the weights. Calls that each have
# weights of their own would record again and again: 64 modules took twice as long as one, and
# fifty times where their results were kept.
_GRAPHS = ("reduce-overhead", "max-autotune")

# Calls after which a module is compiled and, in the modes that record CUDA graphs, recorded.
_CALLS = 3


def _mode_for_copies(mode):
    """Returns the mode for modules that each have weights of their own on a GPU. Raises Failure."""
    if mode == "reduce-overhead":
        raise Failure(
            failure.ENVIRONMENT,
            "the baseline compiled-reduce-overhead records CUDA graphs around one copy of the "
            "weights, and here each call has its own: use --baseline compiled, whose blocks are "
            "replayed as graphs where that is faster",
        )
    return mode + "-no-cudagraphs" if mode in _GRAPHS else mode


class Compiled:
    """torch.compile's versions of modules of one kind, which share the compiled code. `copied`: on
    a GPU each call has a module with weights of its own. Raises Failure for a mode that cannot.
    """

    def __init__(self, baseline, copied):
        self._mode = _mode_for_copies(MODES[baseline]) if copied else MODES[baseline]
        self._by_module = {}

    def made(self, model, arguments):
        """Returns the compiled version, compiled by first calls with `arguments()`. Raises
        Failure(kEnvironment) if this PyTorch has no compiler, or it fails.
        """
        if id(model) in self._by_module:
            return self._by_module[id(model)]
        if not hasattr(torch, "compile"):
            raise Failure(
                failure.ENVIRONMENT,
                f"PyTorch {torch.__version__} has no torch.compile: use the baseline "
                "'eager' or a newer PyTorch",
            )
        # In this process: helpers that stay would use the cores that are being timed.
        os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
        try:
            made = torch.compile(model, mode=self._mode)
            for _ in range(_CALLS):
                made(*arguments())
        except BaseException as error:
            raise Failure(
                failure.ENVIRONMENT,
                f"torch.compile cannot compile this problem: {failure.describe_exception(error)}",
            ) from error
        self._by_module[id(model)] = made
        return made

    def of(self, modules, arguments):
        """Returns the compiled versions of the modules of slots. `arguments(slot)`: those of a
        first call.
        """
        return [
            self.made(module, lambda slot=slot: arguments(slot))
            for slot, module in enumerate(modules)
        ]
