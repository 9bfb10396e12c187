"""A session: one warm worker, asked again and again."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import time
import warnings
import weakref
from types import TracebackType
from typing import (
    Any,
    AsyncGenerator,
    Callable,
    Generator,
    Iterator,
    List,
    Optional,
    Sequence,
    Type,
    TypeVar,
)

from ._core import Core
from ._errors import InternalError, TimedOut, WorkerTrouble
from ._events import Description, Event, Repeated
from ._inputs import Candidates, ProblemLike, candidates_of, problem_of, terms_of
from ._program import PathLike
from ._request import Request
from ._verdict import Verdict
from ._worker import ENDED, Raw

OnEvent = Callable[[Event], object]
EventStream = Generator[Event, None, None]

_LAST = ("done", "error", ENDED)
_CANCEL_S = 30.0  # for the worker to say that a request has ended
_Self = TypeVar("_Self", bound="Session")


class Session:
    """Judges candidates with one worker process, which keeps what it has opened ready.

    Use it as a context manager, or call `close`. The worker starts with the first request; a worker
    that dies is started again, and its request repeated once (WorkerTrouble warns). Requests of
    several threads, or of several tasks of asyncio, are served one after the other. A forked child
    gets a UsageError. Leaving a request early, by an exception, Ctrl-C, a time-out, the end of an
    iteration or the cancelling of a task, cancels it, and the session stays usable.

    All requests take the same arguments:

    problem: a pathlib.Path; a text that names a file or a problem of an installed suite; source (a
        text of several lines); or a class or module whose file has `get_inputs`.
    candidates: one, or a list: paths, source texts, or `assay.Source(text, name)`.
    limit_s: seconds until the request is cancelled and TimedOut raised; None: no limit.
    on_event: called with each event, in the thread that asks.
    terms: the options of `assay judge` (docs/worker.md), such as size="small", threads=1, p=1.5,
        device="cuda", set={"ROWS": 64}, timeout_s=10, budget_s=8.

    Errors: UsageError for what is wrong in the request, MachineError for what this machine lacks,
    TimedOut, WorkerDied, Interrupted. `verdicts` of an error has those that stand.
    """

    def __init__(
        self,
        *,
        program: Optional[PathLike] = None,
        cores: Sequence[int] = (),
        measuring_cores: Sequence[int] = (),
        sharers: Optional[int] = None,
        sessions_memory: Optional[str] = None,
        limit_s: Optional[float] = None,
        on_event: Optional[OnEvent] = None,
        **terms: Any,
    ) -> None:
        """`terms`, `limit_s` and `on_event` are the defaults of all requests. The others are
        options of `assay worker`: the program; cores that it may use; cores on which it measures
        alone; workers that share the device; memory that open problems may take, such as "8G".
        """
        options: List[str] = []
        for name, value in (
            ("--cores", ",".join(map(str, cores))),
            ("--measuring-cores", ",".join(map(str, measuring_cores))),
            ("--sharers", "" if sharers is None else str(sharers)),
            ("--memory", sessions_memory or ""),
        ):
            options += [name, value] if value else []
        self._core = Core(program, options)
        self._terms, self._limit_s, self._on_event = terms, limit_s, on_event
        # At the latest when nobody holds the session, or the interpreter ends.
        self._finalizer = weakref.finalize(self, self._core.close)
        terms_of(terms, self._core.keep)  # what is wrong in them is told here

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    async def __aenter__(self: _Self) -> _Self:
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self.close)

    def close(self) -> None:
        """Ends the worker and all that it started. Open requests end with Interrupted or
        UsageError. In a forked child it does nothing.
        """
        self._finalizer()

    @property
    def worker_pid(self) -> Optional[int]:
        """The worker's process, or None before the first request and after the end."""
        return self._core.worker_pid

    def judge(
        self,
        problem: ProblemLike,
        candidates: Candidates,
        *,
        limit_s: Optional[float] = None,
        on_event: Optional[OnEvent] = None,
        **terms: Any,
    ) -> List[Verdict]:
        """Judges correctness and speed. Returns the verdicts in the candidates' order."""
        request = self._request("judge", problem, candidates, terms)
        self._serve(request, limit_s, on_event)
        return request.verdicts()

    def check(
        self,
        problem: ProblemLike,
        candidates: Candidates,
        *,
        limit_s: Optional[float] = None,
        on_event: Optional[OnEvent] = None,
        **terms: Any,
    ) -> List[Verdict]:
        """Judges correctness alone: the outcome of a right candidate is `correct`."""
        request = self._request("check", problem, candidates, terms)
        self._serve(request, limit_s, on_event)
        return request.verdicts()

    def describe(
        self, problem: ProblemLike, *, limit_s: Optional[float] = None, **terms: Any
    ) -> Description:
        """Opens the problem and says what its arguments are."""
        request = self._request("describe", problem, (), terms)
        self._serve(request, limit_s, None)
        return _described(request)

    def stream(
        self,
        problem: ProblemLike,
        candidates: Candidates,
        *,
        correctness_only: bool = False,
        limit_s: Optional[float] = None,
        **terms: Any,
    ) -> EventStream:
        """Yields the events of a judgement as they come: Progress, Judged, Unjudged, Repeated.

        Raises what `judge` raises. To stop early close the iterator, as `contextlib.closing` does.
        """
        kind = "check" if correctness_only else "judge"
        request = self._request(kind, problem, candidates, terms)
        yield from self._events(request, limit_s)
        request.verdicts()

    async def ajudge(
        self,
        problem: ProblemLike,
        candidates: Candidates,
        *,
        limit_s: Optional[float] = None,
        on_event: Optional[OnEvent] = None,
        **terms: Any,
    ) -> List[Verdict]:
        """`judge` for asyncio. Cancelling the task cancels the request."""
        request = self._request("judge", problem, candidates, terms)
        await self._aserve(request, limit_s, on_event)
        return request.verdicts()

    async def acheck(
        self,
        problem: ProblemLike,
        candidates: Candidates,
        *,
        limit_s: Optional[float] = None,
        on_event: Optional[OnEvent] = None,
        **terms: Any,
    ) -> List[Verdict]:
        """`check` for asyncio."""
        request = self._request("check", problem, candidates, terms)
        await self._aserve(request, limit_s, on_event)
        return request.verdicts()

    async def adescribe(
        self, problem: ProblemLike, *, limit_s: Optional[float] = None, **terms: Any
    ) -> Description:
        """`describe` for asyncio."""
        request = self._request("describe", problem, (), terms)
        await self._aserve(request, limit_s, None)
        return _described(request)

    async def astream(
        self,
        problem: ProblemLike,
        candidates: Candidates,
        *,
        correctness_only: bool = False,
        limit_s: Optional[float] = None,
        **terms: Any,
    ) -> AsyncGenerator[Event, None]:
        """`stream` for asyncio. To stop early await the iterator's `aclose`."""
        kind = "check" if correctness_only else "judge"
        request = self._request(kind, problem, candidates, terms)
        events = self._aevents(request, limit_s)
        try:
            async for event in events:
                yield event
        finally:
            await events.aclose()
        request.verdicts()

    def _request(self, kind: str, problem: object, candidates: Any, terms: Any) -> Request:
        self._core.check()
        core = self._core
        asked = terms_of({**self._terms, **terms}, core.keep)
        asked["problem"] = problem_of(problem, core.keep)
        entries = () if kind == "describe" else candidates_of(candidates)
        return Request(core.next_number(), kind, asked, entries)

    def _serve(
        self, request: Request, limit_s: Optional[float], on_event: Optional[OnEvent]
    ) -> None:
        tell = on_event or self._on_event
        with contextlib.closing(self._events(request, limit_s)) as events:
            for event in events:
                if tell is not None:
                    tell(event)

    def _events(self, request: Request, limit_s: Optional[float]) -> EventStream:
        box: "queue.SimpleQueue[Raw]" = queue.SimpleQueue()
        limit_s = self._limit_s if limit_s is None else limit_s
        deadline = None if limit_s is None else time.monotonic() + limit_s
        try:
            yield from _told(self._core.submit(request, box.put))
            while not request.finished:
                try:
                    raw = box.get(timeout=_left(deadline))
                except queue.Empty:
                    raise TimedOut(f"no answer within {limit_s} s") from None
                event = request.take(raw)
                if request.again:
                    self._core.submit(request, box.put)
                yield from _told(event)
        except BaseException:
            self._stop(request, box)
            raise
        request.check()

    def _stop(self, request: Request, box: "queue.SimpleQueue[Raw]") -> None:
        """Cancels what is open, and waits until the worker has stopped it."""
        worker = self._core.cancel(request)
        if worker is None:
            return
        deadline = time.monotonic() + _CANCEL_S
        try:
            while box.get(timeout=_left(deadline))["event"] not in _LAST:
                pass
        except queue.Empty:
            worker.kill()
        except BaseException:  # a second Ctrl-C
            worker.kill()
            raise

    async def _aserve(
        self, request: Request, limit_s: Optional[float], on_event: Optional[OnEvent]
    ) -> None:
        tell = on_event or self._on_event
        events = self._aevents(request, limit_s)
        try:
            async for event in events:
                if tell is not None:
                    tell(event)
        finally:
            await events.aclose()

    async def _aevents(
        self, request: Request, limit_s: Optional[float]
    ) -> AsyncGenerator[Event, None]:
        box: "asyncio.Queue[Raw]" = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def put(raw: Raw) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(box.put_nowait, raw)

        limit_s = self._limit_s if limit_s is None else limit_s
        deadline = None if limit_s is None else time.monotonic() + limit_s
        try:
            for each in _told(self._core.submit(request, put)):
                yield each
            while not request.finished:
                try:
                    raw = await asyncio.wait_for(box.get(), _left(deadline))
                except asyncio.TimeoutError:
                    raise TimedOut(f"no answer within {limit_s} s") from None
                event = request.take(raw)
                if request.again:
                    self._core.submit(request, put)
                for each in _told(event):
                    yield each
        except BaseException:
            await self._astop(request, box)
            raise
        request.check()

    async def _astop(self, request: Request, box: "asyncio.Queue[Raw]") -> None:
        worker = self._core.cancel(request)
        if worker is None:
            return
        deadline = time.monotonic() + _CANCEL_S
        try:
            while (await asyncio.wait_for(box.get(), _left(deadline)))["event"] not in _LAST:
                pass
        except asyncio.TimeoutError:
            worker.kill()
        except BaseException:  # cancelled again
            worker.kill()
            raise


def _left(deadline: Optional[float]) -> Optional[float]:
    return None if deadline is None else max(0.0, deadline - time.monotonic())


def _told(event: Optional[Event]) -> Iterator[Event]:
    """The event, if there is one; trouble is warned of, too."""
    if isinstance(event, Repeated):
        warnings.warn(event.message, WorkerTrouble, stacklevel=5)
    if event is not None:
        yield event


def _described(request: Request) -> Description:
    if request.description is None:
        raise InternalError("the worker left out the description")
    return request.description


def judge(
    problem: ProblemLike,
    candidates: Candidates,
    *,
    limit_s: Optional[float] = None,
    on_event: Optional[OnEvent] = None,
    **terms: Any,
) -> List[Verdict]:
    """Judges candidates with a worker of their own, and returns the verdicts in their order.

    Arguments and errors are those of `Session`, which is quicker for more than one call.
    """
    with Session() as session:
        return session.judge(problem, candidates, limit_s=limit_s, on_event=on_event, **terms)
