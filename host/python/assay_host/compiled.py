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


# Calls after which a module is compiled and, in the modes that record CUDA graphs, recorded.
_CALLS = 3


class Compiled:
    """torch.compile's versions of modules of one kind, which share the compiled code."""

    def __init__(self, baseline):
        self._mode = MODES[baseline]
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
