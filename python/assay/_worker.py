"""One process of `assay worker`: JSON lines in, events out (docs/worker.md)."""

from __future__ import annotations

import collections
import json
import os
import signal
import subprocess
import threading
from typing import Any, Callable, Deque, Dict, List, Mapping, Sequence

from ._errors import InternalError
from ._program import end

SCHEMA = "assay.worker/1"
# Not of the protocol: what each request that is open gets once the process has ended.
ENDED = "ended"

Raw = Dict[str, Any]
Sink = Callable[[Raw], None]

_STDERR_LINES_MAX = 20
_END_S = 20.0  # for its hosts, after SIGTERM


class Worker:
    """Owns the process, and hands each event to the sink of its request.

    Sinks are called in a thread of the worker's: they must not block. The last event of a sink is
    `done`, `error` or ENDED. Safe to use from several threads; not after a fork.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._lock = threading.Lock()
        self._sinks: Dict[str, Sink] = {}
        self._stderr: Deque[str] = collections.deque(maxlen=_STDERR_LINES_MAX)
        self._ready = False
        self._gone: Raw = {}  # the ENDED event, once it has ended
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=environment,
            start_new_session=True,  # Ctrl-C reaches the client alone, which cancels
        )
        pipes = (self.process.stdin, self.process.stdout, self.process.stderr)
        self._in, self._out, self._err = (pipe for pipe in pipes if pipe is not None)
        self._errors = threading.Thread(target=self._keep_stderr, daemon=True)
        self._errors.start()
        threading.Thread(target=self._hand_out, daemon=True).start()

    @property
    def ended(self) -> str:
        """How it ended, in words; empty while it runs."""
        return str(self._gone.get("message", ""))

    def post(self, request: Raw, sink: Sink) -> None:
        """Sends a request; its events go to the sink. A worker that has ended answers ENDED."""
        with self._lock:
            if not self._gone:
                self._sinks[request["id"]] = sink
                self._write(request)
                return
        sink(self._gone)

    def cancel(self, number: str) -> bool:
        """Ends an open request early: its last event follows. Returns false if it is not open."""
        with self._lock:
            if number not in self._sinks:
                return False
            self._write({"request": "cancel", "of": number})
            return True

    def terminate(self) -> None:
        """Ends the process and its hosts: by SIGTERM, or else by SIGKILL."""
        end(self.process, signal.SIGTERM, _END_S)

    def kill(self) -> None:
        """Ends the process at once; its hosts end with it."""
        self.process.kill()

    def _write(self, request: Raw) -> None:
        """With the lock held. A line of which only a part was written would spoil the next one."""
        line = json.dumps(request).encode() + b"\n"
        written = 0
        try:
            while written < len(line):
                written += os.write(self._in.fileno(), line[written:])
        except (BrokenPipeError, ValueError):
            return  # it ends: _hand_out tells
        except BaseException:
            if written:
                self.process.kill()
            raise

    def _keep_stderr(self) -> None:
        for line in self._err:
            self._stderr.append(line.decode(errors="replace").rstrip())
        self._err.close()

    def _hand_out(self) -> None:
        """Reads events until the process has ended, and tells all that still wait."""
        failure = ""
        try:
            for line in self._out:
                self._take(json.loads(line))
        except (ValueError, KeyError, InternalError) as error:
            failure = f"it does not speak {SCHEMA}: {error}"
            self.process.kill()
        code = self.process.wait()
        self._out.close()
        self._errors.join()
        waiting: List[Sink]
        with self._lock:
            self._in.close()
            said = "\n".join(self._stderr)
            self._gone = {
                "event": ENDED,
                "message": failure or self._how(code),
                "stderr": said,
                "code": 70 if failure else code,
                "ready": self._ready and not failure,
            }
            waiting = list(self._sinks.values())
            self._sinks.clear()
        for sink in waiting:
            sink(self._gone)

    def _take(self, event: Raw) -> None:
        if event.get("schema") != SCHEMA:
            raise InternalError(f"a line of {event.get('schema')}")
        if event["event"] == "ready":
            self._ready = True
        number = event.get("id", "")
        with self._lock:
            last = event["event"] in ("done", "error")
            sink = self._sinks.pop(number, None) if last else self._sinks.get(number)
        if sink is not None:
            sink(event)

    @staticmethod
    def _how(code: int) -> str:
        return f"it was ended by signal {-code}" if code < 0 else f"it ended with exit code {code}"
