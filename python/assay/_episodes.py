"""A client of `assay env`: episodes for training (docs/env.md)."""

from __future__ import annotations

import json
import signal
import subprocess
import weakref
from types import TracebackType
from typing import Any, Dict, Optional, Type

from ._errors import MachineError, error_of_exit, error_of_kind
from ._program import PathLike, end, environment, find_program

_SHUTDOWN_S = 60.0


class Episodes:
    """One process of `assay env`. Its requests are answered one after the other: by one thread.

    `arguments`: problems and options of `assay env`. `ready`: its first event, with the problems.
    """

    def __init__(self, *arguments: str, program: Optional[PathLike] = None) -> None:
        """Raises MachineError or UsageError if it does not start; its words are on stderr."""
        self._process = subprocess.Popen(
            [find_program(program), "env", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env=environment(),
            start_new_session=True,
        )
        self._finalizer = weakref.finalize(self, end, self._process, signal.SIGTERM)
        try:
            self.ready = self._event()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Episodes:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def ask(self, request: str, **fields: Any) -> Dict[str, Any]:
        """Returns the event of a request: reset, step, fork or close.

        Raises UsageError or MachineError with the message of an `error` event.
        """
        stdin = self._process.stdin
        if stdin is None or stdin.closed:
            raise MachineError("the environment is closed")
        try:
            stdin.write(json.dumps({"request": request, **fields}).encode() + b"\n")
        except BrokenPipeError:
            pass  # its exit code tells more
        event = self._event()
        if event["event"] == "error":
            raise error_of_kind(event["kind"], event["message"], event.get("code"), ())
        return event

    def close(self) -> None:
        """Ends the process: by a request, or else by a signal."""
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None or stdin.closed:
            return
        try:
            stdin.close()  # the end of its input is a shutdown
            self._process.wait(_SHUTDOWN_S)
        except subprocess.TimeoutExpired:
            pass
        finally:
            self._finalizer()
            stdout.close()

    def _event(self) -> Dict[str, Any]:
        stdout = self._process.stdout
        line = stdout.readline() if stdout is not None else b""
        if not line:
            code = self._process.wait()
            raise error_of_exit(code, f"assay env ended with exit code {code}")
        event: Dict[str, Any] = json.loads(line)
        return event
