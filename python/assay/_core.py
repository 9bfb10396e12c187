"""What a session holds: its worker, its files, and the process that may use them."""

from __future__ import annotations

import itertools
import os
import pathlib
import shutil
import tempfile
import threading
from typing import Optional, Sequence

from ._errors import UsageError
from ._events import Repeated
from ._inputs import source_name
from ._program import PathLike, environment, find_program
from ._request import Request
from ._worker import Sink, Worker


class Core:
    """Starts a worker when one is needed. Knows nothing of the Session, so that this one's end is
    noticed. Safe to use from several threads; a forked child is refused before any lock is taken.
    """

    def __init__(self, program: Optional[PathLike], options: Sequence[str]) -> None:
        self._program, self._options = program, list(options)
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._worker: Optional[Worker] = None
        self._sources: Optional[str] = None  # a folder; the end of a forked child leaves it alone
        self._closed = False

    @property
    def worker_pid(self) -> Optional[int]:
        worker = self._worker
        return None if worker is None or worker.ended else worker.process.pid

    def check(self) -> None:
        """Raises UsageError in a forked child, and after close()."""
        if os.getpid() != self._owner:
            raise UsageError(
                "this session belongs to the process that opened it: open another one after a fork"
            )
        if self._closed:
            raise UsageError("the session is closed")

    def next_number(self) -> str:
        return str(next(self._numbers))

    def keep(self, text: str, ending: str) -> str:
        """Writes a source to a file of the session's, and returns its path."""
        self.check()
        with self._lock:
            if self._sources is None:
                self._sources = tempfile.mkdtemp(prefix="assay-")
            path = pathlib.Path(self._sources) / source_name(text, ending)
            if not path.exists():
                part = path.with_suffix(".part")
                part.write_text(text, encoding="utf-8")
                part.replace(path)  # whole, or not there
        return str(path)

    def submit(self, request: Request, sink: Sink) -> Optional[Repeated]:
        """Sends the request. Returns trouble to tell of: the last worker had ended."""
        self.check()
        trouble = None
        with self._lock:
            if self._closed:
                raise UsageError("the session is closed")
            if self._worker is not None and self._worker.ended:
                trouble = Repeated(
                    f"the worker was lost while idle: {self._worker.ended}. Another one was started"
                )
                self._worker = None
            if self._worker is None:
                command = [find_program(self._program), "worker", *self._options]
                self._worker = Worker(command, environment())
            worker = self._worker
        request.worker = worker
        worker.post(request.line(), sink)
        return None if request.repeated else trouble

    def cancel(self, request: Request) -> Optional[Worker]:
        """Cancels an open request. Returns the worker, or None if no event of it is to come."""
        worker = request.worker
        if os.getpid() != self._owner or worker is None or request.finished:
            return None
        return worker if worker.cancel(request.number) else None

    def close(self) -> None:
        """Ends the worker and removes the files; in a forked child it leaves both alone."""
        if os.getpid() != self._owner:
            return
        with self._lock:
            self._closed = True
            worker, self._worker = self._worker, None
            sources, self._sources = self._sources, None
        try:
            if worker is not None:
                worker.terminate()
        finally:
            if sources is not None:
                shutil.rmtree(sources, ignore_errors=True)
