"""A problem's own check of outputs, for answers that are not unique.

A problem file may define `check(inputs, outputs)`, or `check(inputs, outputs, model)`; or the name
of one of ready_checks.py, such as `check = "eigh"`. It returns
None if the outputs are right, and otherwise a sentence that says what is wrong and where. `inputs`
are forward's arguments as they were before the call, `outputs` the tensors in the order of the
signature: forward's results, then the inputs that it changes, as they are after the call. All of
them are copies, in their own dtypes. `model` has the weights of that call.

  kCheck  args: slot of the draw; carries a memfd with outputs, laid out as in a slot
          [1 if they are right]; else the sentence is in the report
"""

import inspect
import os

import torch

from assay_host import failure, problem, ready_checks, values, wire
from assay_host.failure import Failure

NAME = "check"
_SENTENCE_LENGTH_MAX = 400


class OwnCheck:
    """Answers kCheck for a reference."""

    def __init__(self, reference, context):
        self._reference, self._context = reference, context
        self._function = None
        self._arguments = 0

    def handlers(self):
        return {wire.CHECK: self._check}

    def load(self, module):
        """Takes the check of the problem's module. Returns whether it has one. Raises
        Failure(kProblemLoad) for one that cannot be called.
        """
        self._function = getattr(module, NAME, None)
        if self._function is None:
            return False
        if isinstance(self._function, str):
            self._function = ready_checks.CHECKS.get(self._function)
        self._arguments = _argument_count(self._function)
        if self._arguments is None:
            raise Failure(
                failure.PROBLEM_LOAD,
                f"the problem file's {NAME} must be a function {NAME}(inputs, outputs), or "
                f"{NAME}(inputs, outputs, model), or one of the texts "
                f"{', '.join(ready_checks.CHECKS)}",
            )
        return True

    def _check(self, args, fd):
        if self._function is None:
            raise Failure(failure.ENVIRONMENT, f"the problem has no {NAME}")
        outputs = _outputs(self._reference.slots().output_specs, fd)
        given = self._reference.given_to_check(args[0], outputs)
        # The same outputs get the same answer, even if the check draws numbers.
        problem.seed_everything(0)
        try:
            said = self._function(*given[: self._arguments])
        except BaseException as error:
            path = self._context.path("problem", "problem.py")
            raise failure.because(
                failure.PROBLEM_CHECK,
                error,
                path,
                f"the problem's own {NAME} fails: ",
                "; it must return None or a sentence, whatever the outputs hold",
            ) from error
        finally:
            torch.set_grad_enabled(False)
            torch.set_default_dtype(torch.float32)
        if said is None:
            return (1,)
        if not isinstance(said, str) or not said.strip():
            shown = "empty text" if isinstance(said, str) else repr(said)[:40]
            raise Failure(
                failure.PROBLEM_CHECK,
                f"the problem's own {NAME} returns {shown}; it must return None if the outputs are "
                "right, else a sentence that says what is wrong",
            )
        self._context.say(" ".join(said.split())[:_SENTENCE_LENGTH_MAX])
        return (0,)


def _argument_count(function):
    """Returns 2 or 3; None if it can be called with neither."""
    if not callable(function):
        return None
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    # Two are enough where the third has a default of its own.
    for count in (2, 3):
        try:
            signature.bind(*range(count))
            return count
        except TypeError:
            pass
    return None


def _outputs(specs, fd):
    """Returns the outputs in the memory file as tensors of their own."""
    tensors = []
    for spec in specs:
        shape = tuple(spec.shape[: spec.rank])
        dtype = values.DTYPES[spec.dtype]
        if spec.size_bytes == 0:
            tensors.append(torch.empty(shape, dtype=dtype))
            continue
        data = bytearray(_read(fd, spec.size_bytes, spec.offset))
        tensors.append(torch.frombuffer(data, dtype=dtype).view(shape))
    return tensors


def _read(fd, size_bytes, offset):
    """Reads it all: one call reads 2 GiB at most."""
    parts = []
    while size_bytes > 0:
        part = os.pread(fd, min(size_bytes, 1 << 30), offset)
        if not part:
            raise Failure(failure.ENVIRONMENT, "the outputs to check are cut off")
        parts.append(part)
        size_bytes -= len(part)
        offset += len(part)
    return b"".join(parts)
