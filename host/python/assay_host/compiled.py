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


def compiled(model, arguments, baseline="compiled"):
    """Returns torch.compile's version of the model, compiled by first calls with `arguments()`.
    Raises Failure(kEnvironment) if this PyTorch has no compiler, or it fails.
    """
    if not hasattr(torch, "compile"):
        raise Failure(
            failure.ENVIRONMENT,
            f"PyTorch {torch.__version__} has no torch.compile: use the baseline "
            "'eager' or a newer PyTorch",
        )
    # In this process: helpers that stay would use the cores that are being timed.
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    try:
        made = torch.compile(model, mode=MODES[baseline])
        for _ in range(2):
            made(*arguments())
    except BaseException as error:
        raise Failure(
            failure.ENVIRONMENT,
            "torch.compile cannot compile this problem: " f"{failure.describe_exception(error)}",
        ) from error
    return made
