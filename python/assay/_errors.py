"""The errors that the package raises, by the program's exit codes (docs/verdict.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, List, Optional, Sequence, Type

if TYPE_CHECKING:
    from ._verdict import Verdict


class AssayError(Exception):
    """Base of all errors of the package. A bad candidate is a verdict, and never an error.

    `exit_code`: what the program would end with. `verdicts`: one entry a candidate, in the order of
    the request, None for each that has none; empty where no candidates were asked about.
    """

    exit_code = 70

    def __init__(self, message: str, verdicts: Sequence[Optional[Verdict]] = ()) -> None:
        super().__init__(message)
        self.verdicts: List[Optional[Verdict]] = list(verdicts)


class UsageError(AssayError, ValueError):
    """The request is wrong: an unknown problem, a term that there is not, a closed session."""

    exit_code = 2


class MachineError(AssayError, RuntimeError):
    """This machine lacks something, such as PyTorch or CUDA: nothing is said of the candidate.

    `code` is a fact for programs, or None: not_here, too_large, memory, device_memory, device_busy,
    no_device.
    """

    exit_code = 8
    code: Optional[str] = None


class WorkerDied(MachineError):
    """The worker ended twice under the same request. The session starts another on the next one."""


class TimedOut(AssayError, TimeoutError):
    """`limit_s` passed. The request was cancelled, and the session is usable."""

    exit_code = 9


class Interrupted(AssayError):
    """The program was told to stop by somebody else, as by SIGTERM."""

    exit_code = 130


class InternalError(AssayError):
    """A bug of Assay's, or a program that is not of this package's version."""


class WorkerTrouble(RuntimeWarning):
    """A worker was started again, or a request was repeated: the text says why."""


_BY_EXIT_CODE: List[Type[AssayError]] = [UsageError, MachineError, TimedOut, Interrupted]
_KINDS = {"usage": UsageError, "environment": MachineError, "interrupted": Interrupted}


def error_of_exit(code: int, message: str) -> AssayError:
    """The error that an exit code stands for."""
    for kind in _BY_EXIT_CODE:
        if kind.exit_code == code:
            return kind(message)
    return InternalError(f"{message} (exit code {code})")


def error_of_kind(
    kind: str, message: str, code: Optional[str], verdicts: Sequence[Optional[Verdict]]
) -> AssayError:
    """The error that an `error` event of a worker stands for."""
    error = _KINDS.get(kind, InternalError)(message, verdicts)
    if isinstance(error, MachineError):
        error.code = code
    return error
