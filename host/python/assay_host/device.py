"""The device that modules run on: the CPU, or a CUDA device where the settings say
"device": "cuda". "precision": "tf32" lets products of matrices and convolutions there take shorter
inputs; without it they do not.
"""

import os
import sys
import time

import torch

from assay_host import failure, wire
from assay_host.failure import Failure

CPU, CUDA = "cpu", "cuda"
_EXIT_DEVICE = 3  # the native host's, too
_COPIES, _ROUNDS = 50, 5


def name(settings):
    """CPU or CUDA. Raises Failure(kEnvironment) for a device that nobody knows."""
    found = settings.get("device", CPU)
    if found not in (CPU, CUDA):
        raise Failure(failure.ENVIRONMENT, f"the python host knows no device {found!r}")
    return found


def start(settings):
    """Starts CUDA where it is wanted: a host that is locked down could not any more. Raises
    Failure(kEnvironment).
    """
    if name(settings) == CPU:
        return
    shorter = settings.get("precision") == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = shorter
    torch.backends.cudnn.allow_tf32 = shorter
    torch.backends.cudnn.benchmark = False
    try:
        torch.zeros(1, device=CUDA)
    except Exception as error:
        raise Failure(
            failure.ENVIRONMENT,
            f"PyTorch {torch.__version__} cannot use the CUDA device: "
            f"{failure.describe_exception(error)}",
        ) from error


def move(model, number, path):
    """The model on the CUDA device, where it has a way to get there. Raises Failure(number)."""
    if not hasattr(model, "to"):
        return model
    try:
        return model.to(CUDA)
    except BaseException as error:
        raise Failure(
            number,
            f"{type(model).__name__} cannot be moved to the device: "
            f"{failure.explain(error, path)}",
        ) from error


class Placement:
    """Where a reference's module runs, and where its draws are made: ordinary ones there, where
    get_inputs() can, since drawing on the CPU would take most of a judgement; others on the CPU.
    """

    def __init__(self, settings):
        self.device = name(settings)
        self._draws_there = self.device != CPU and hasattr(torch, "set_default_device")

    def draw(self, get_inputs):
        """An ordinary draw, on the device where that works. Tensors may lie on either side."""
        if self._draws_there:
            try:
                with torch.device(self.device):
                    return get_inputs()
            except failure.Failure:
                self._draws_there = False
        return get_inputs()

    def finish(self):
        """Waits for the device: what was asked for stands in slots that lie there."""
        if self.device != CPU:
            torch.cuda.synchronize()

    def module(self, model, path):
        """Raises Failure(kProblemLoad)."""
        return model if self.device == CPU else move(model, failure.PROBLEM_LOAD, path)

    def drawn(self, value):
        """What get_inputs() gave, on the CPU; also where it puts tensors on the device itself."""
        if isinstance(value, torch.Tensor) and value.device.type == self.device:
            return value.cpu()
        return value

    def there(self, value):
        """An argument where the module runs: the tensor itself if it lies there."""
        if isinstance(value, torch.Tensor) and value.device.type != self.device:
            return value.to(self.device)
        return value

    def copy(self, value):
        """The same, as slots hand it over: contiguous, without autograd, on its own memory."""
        if not isinstance(value, torch.Tensor):
            return value
        value = value.detach()
        if value.device.type != self.device:
            return value.to(self.device, memory_format=torch.contiguous_format)
        return value.clone(memory_format=torch.contiguous_format)

    def double_copy(self, value):
        """The same with floating-point tensors in float64."""
        if isinstance(value, torch.Tensor) and value.dtype.is_floating_point:
            return value.detach().to(self.device, torch.float64, copy=True)
        return self.copy(value)

    def misplaced(self, tensor):
        """Whether a result lies elsewhere; a number may come from the CPU."""
        return tensor.dim() > 0 and tensor.device.type != self.device


def wait(library, loop):
    """Waits until the device has done its work; nothing that foreign code put in the place of
    PyTorch's functions is asked.
    """
    end_by_error(library, loop, library.synchronize_device())


def end_by_error(library, loop, result):
    """An error of the device's takes the context with it: it is told in the report, and the process
    ends. Nothing happens where CUDA's result is none.
    """
    if result == 0:
        return
    report = wire.Report.from_address(loop.report)
    words = f"the device reports {library.describe_device(result)}"
    report.message = wire.encode_text(words, wire.MESSAGE_BYTES)
    report.fault = wire.FAULT_DEVICE
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(_EXIT_DEVICE)


def cost_ns(work, wait_for_all):
    """What work() costs on a device that works it off in the background: the mean of many in a row,
    the least of a few times [ns].
    """

    def measured():
        start_ns = time.perf_counter_ns()
        for _ in range(_COPIES):
            work()
        wait_for_all()
        return (time.perf_counter_ns() - start_ns) // _COPIES

    measured()
    return min(measured() for _ in range(_ROUNDS))
