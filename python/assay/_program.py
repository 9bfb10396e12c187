"""The program `assay`: where it is, and calls of it that end with one answer."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import shutil
import signal
import subprocess
import sys
from typing import Dict, List, Optional, Sequence, Union

from ._errors import MachineError, TimedOut, error_of_exit

PathLike = Union[str, "os.PathLike[str]"]

# The wheel's own: the relocatable program lies in the package.
OWN_PROGRAM = pathlib.Path(__file__).resolve().parent / "program" / "bin" / "assay"
_STOP_S = 30.0  # for a program that was told to stop


def find_program(program: Optional[PathLike] = None) -> str:
    """Returns the path of `program`, or of the wheel's own, or of the one on PATH.

    Raises MachineError if there is none.
    """
    if program is None and OWN_PROGRAM.is_file():
        return str(OWN_PROGRAM)
    wanted = "assay" if program is None else os.fspath(program)
    found = shutil.which(wanted)
    if found is None:
        raise MachineError(
            f"the program {wanted} was not found: install Assay's wheel, or put the program "
            "on PATH (docs/python.md)"
        )
    return found


def environment() -> Dict[str, str]:
    """The variables of the program: its Python is this one if this one has PyTorch.

    ASSAY_PYTHON, if it is set, names another. Without either the program looks for itself.
    """
    variables = dict(os.environ)
    has_torch = importlib.util.find_spec("torch") is not None
    if not variables.get("ASSAY_PYTHON") and sys.executable and has_torch:
        variables["ASSAY_PYTHON"] = sys.executable
    return variables


def end(process: "subprocess.Popen[bytes]", number: int, grace_s: float = _STOP_S) -> None:
    """Sends the signal, waits, and kills what has not ended by then."""
    if process.poll() is not None:
        return
    try:
        process.send_signal(number)
        process.wait(grace_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    except BaseException:  # a second Ctrl-C
        process.kill()
        process.wait()
        raise


def call(
    arguments: Sequence[str],
    *,
    program: Optional[PathLike] = None,
    limit_s: Optional[float] = None,
    quiet: bool = True,
    accepted: Sequence[int] = (0,),
) -> str:
    """Runs the program to its end, and returns its stdout.

    `quiet`: stderr is kept for errors; otherwise it is this process's. Raises the error of the exit
    code if it is not among `accepted`, and TimedOut. However it ends, the program has ended.
    """
    command: List[str] = [find_program(program), *arguments]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if quiet else None,
        env=environment(),
        start_new_session=True,  # Ctrl-C reaches this process alone, which passes it on
    )
    try:
        out, err = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired as error:
        end(process, signal.SIGINT)
        raise TimedOut(f"assay {arguments[0]} took more than {limit_s} s") from error
    except BaseException:
        end(process, signal.SIGINT)
        raise
    finally:
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
    if process.returncode not in accepted:
        said = (err or b"").decode(errors="replace").strip()
        raise error_of_exit(process.returncode, said or f"assay {arguments[0]} failed")
    return out.decode()


def main() -> None:
    """The command `assay` of an environment: the wheel's program takes this process's place."""
    try:
        program = find_program()
        os.execve(program, [program, *sys.argv[1:]], environment())
    except (MachineError, OSError) as error:
        print(f"assay: {error}", file=sys.stderr)
        sys.exit(MachineError.exit_code)
