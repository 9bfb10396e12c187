"""The device that modules run on: the CPU, or a CUDA device where the settings say "device":
"cuda". "precision": "tf32" lets matrix products and convolutions there round their inputs to TF32;
otherwise they do not.
"""

import os
import sys
import time

import torch

from assay_host import failure, layout, wire
from assay_host.failure import Failure

CPU, CUDA = "cpu", "cuda"
_EXIT_DEVICE = 3  # the native host's, too
_COPIES, _ROUNDS = 50, 5
_ROUND_NS = 20_000_000
# Memory that PyTorch's allocator may hold though no tensor uses it; more only while as much is
# free, and this part of all: other judges and hosts share the device.
_UNUSED_BYTES_MAX, _FREE_PART = 2**30, 4
# The driver clears memory that is given back: 2.5 ms a GiB on an H200, in which others have a tenth
# less of the bandwidth (bench/results/h200/given_back.txt).
_CLEARING_S_PER_BYTE = 3e-3 / 2**30


def name(settings):
    """Returns the settings' device, CPU or CUDA. Raises Failure(kEnvironment) for an unknown one.
    """
    found = settings.get("device", CPU)
    if found not in (CPU, CUDA):
        raise Failure(failure.ENVIRONMENT, f"the python host knows no device {found!r}")
    return found


def start(settings, libraries=0):
    """Starts CUDA if the settings ask for it: a host cannot after its lockdown. Starts the vendor's
    libraries (wire.USES_PRODUCTS, wire.USES_CONVOLUTIONS), which would take a tenth of a second of
    a first call. Raises Failure(kEnvironment).
    """
    failure.cuda_is_here = name(settings) != CPU
    if not failure.cuda_is_here:
        return
    shorter = settings.get("precision") == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = shorter
    torch.backends.cudnn.allow_tf32 = shorter
    torch.backends.cudnn.benchmark = False
    try:
        torch.zeros(1, device=CUDA)
        if libraries & wire.USES_PRODUCTS:
            torch.mm(*torch.ones(2, 64, 64, device=CUDA))
        if libraries & wire.USES_CONVOLUTIONS:
            torch.conv2d(torch.ones(1, 4, 8, 8, device=CUDA), torch.ones(4, 4, 3, 3, device=CUDA))
    except Exception as error:
        raise Failure(
            failure.ENVIRONMENT,
            f"PyTorch {torch.__version__} cannot use the CUDA device: "
            f"{failure.describe_exception(error)}",
        ) from error


def move(model, number, path):
    """Moves the model to the CUDA device, if it has a `to`. Raises Failure(number)."""
    if not hasattr(model, "to"):
        return model
    try:
        return model.to(CUDA)
    except BaseException as error:
        moved = f"{type(model).__name__} cannot be moved to the device: "
        raise failure.because(number, error, path, moved) from error


class Placement:
    """The devices of a reference's module and of its draws. Ordinary draws are made on the module's
    device if get_inputs() can, since drawing on the CPU takes most of a judgement; others on the
    CPU. A draw for which the device lacks memory fails: on the CPU its seed gives other values.
    """

    def __init__(self, settings):
        self.device = name(settings)
        self._draws_there = self.device != CPU and hasattr(torch, "set_default_device")

    def draw(self, get_inputs):
        """Makes an ordinary draw, on the device if possible. Tensors may lie on either side. Raises
        Failure.
        """
        if self._draws_there:
            try:
                with torch.device(self.device):
                    return get_inputs()
            except Failure as error:
                if isinstance(error.__cause__, torch.cuda.OutOfMemoryError):
                    raise
                self._draws_there = False
        return get_inputs()

    def finish(self):
        """Waits for the device: slots there then hold the results. If little memory is free, other
        processes get what no tensor uses any more.
        """
        if self.device == CPU:
            return
        torch.cuda.synchronize()
        unused = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
        if unused > _UNUSED_BYTES_MAX:
            free_bytes, whole_bytes = torch.cuda.mem_get_info()
            if free_bytes < max(unused, whole_bytes // _FREE_PART):
                torch.cuda.empty_cache()
                time.sleep(_CLEARING_S_PER_BYTE * unused)

    def module(self, model, path):
        """Moves the model to the device. Raises Failure(kProblemLoad)."""
        return model if self.device == CPU else move(model, failure.PROBLEM_LOAD, path)

    def drawn(self, value):
        """Returns get_inputs()' values on the CPU, even if it puts tensors on the device itself."""
        if isinstance(value, torch.Tensor) and value.device.type == self.device:
            return value.cpu()
        return value

    def there(self, value):
        """Returns a value as copy() does, but in its own memory if it lies there like that."""
        if not isinstance(value, torch.Tensor) or value.device.type != self.device:
            return self.copy(value)
        laid_out = value.is_contiguous() or layout.of(value) is not None
        return value.detach() if laid_out else self.copy(value)

    def copy(self, value):
        """Returns a copy as slots hand it over: laid out as there, without autograd, in its own
        memory.
        """
        if not isinstance(value, torch.Tensor):
            return value
        return layout.copy(value.detach(), self.device)

    def double_copy(self, value):
        """Returns such a copy, with floating-point tensors in float64."""
        if isinstance(value, torch.Tensor) and value.dtype.is_floating_point:
            return layout.copy(value.detach(), self.device, torch.float64)
        return self.copy(value)

    def misplaced(self, tensor):
        """Returns True if a result lies on another device; a number may come from the CPU."""
        return tensor.dim() > 0 and tensor.device.type != self.device


def wait(library, loop):
    """Waits until the device has done its work, without PyTorch's functions, which foreign code may
    have replaced.
    """
    end_by_error(library, loop, library.synchronize_device())


def end_by_error(library, loop, result):
    """Writes a device's error into the report and ends the process, as the error destroys the
    context. Does nothing if CUDA's result is no error.
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
    """Returns the time of work() on a device that runs it in the background [ns]: the least of a
    few means over many in a row, of less long work over fewer.
    """

    def measured(count):
        start_ns = time.perf_counter_ns()
        for _ in range(count):
            work()
        wait_for_all()
        return (time.perf_counter_ns() - start_ns) // count

    measured(1)
    count = max(1, min(_COPIES, _ROUND_NS // max(1, measured(1))))
    return min(measured(count) for _ in range(_ROUNDS))
