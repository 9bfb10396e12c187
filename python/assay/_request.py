"""One request to a worker, from its terms to its verdicts. No process, no thread: events in,
events out.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence

from ._errors import AssayError, InternalError, WorkerDied, error_of_exit, error_of_kind
from ._events import Description, Event, Judged, Progress, Repeated, Unjudged
from ._verdict import Verdict
from ._worker import ENDED, Raw, Worker


class Request:
    """What was asked, what has come, and whether it is to be sent again.

    It is repeated once: after the death of its worker, or after an error of the machine that came
    in the middle of work and names no lasting cause. Candidates that have their verdicts are not
    asked about again.
    """

    def __init__(
        self,
        number: str,
        kind: str,
        terms: Mapping[str, object],
        candidates: Sequence[Dict[str, str]] = (),
    ) -> None:
        self.number = number
        self.finished = False
        self.again = False  # to be sent once more
        self.repeated = False
        self._begun = False  # work, in the worker that it was sent to last
        self.worker: Optional[Worker] = None  # that it was sent to
        self.description: Optional[Description] = None
        self.failure: Optional[AssayError] = None
        self._kind = kind
        self._terms = dict(terms)
        self._candidates = list(candidates)
        self._verdicts: List[Optional[Verdict]] = [None] * len(candidates)
        self._unjudged: Dict[int, str] = {}
        self._places: List[int] = []  # of the candidates in the line that was sent last

    def line(self) -> Raw:
        """The request as the worker takes it, with the candidates that still lack a verdict."""
        self.again = self._begun = False
        line: Raw = {"id": self.number, "request": self._kind, "terms": self._terms}
        if self._candidates:
            self._places = self._missing()
            line["candidates"] = [self._candidates[i] for i in self._places]
        return line

    def take(self, raw: Mapping[str, Any]) -> Optional[Event]:
        """Takes an event of the worker's; returns what a caller is told of it."""
        kind = raw["event"]
        if kind == "progress":
            self._begun = True
            place = raw.get("candidate")
            at = None if place is None else self._places[place]
            return Progress(raw["stage"], raw["text"], raw["fraction"], at)
        if kind == "verdict":
            at = self._places[raw["candidate"]]
            verdict = Verdict.from_json(raw["verdict"])
            self._verdicts[at] = verdict
            return Judged(at, verdict)
        if kind == "unjudged":
            at = self._places[raw["candidate"]]
            self._unjudged[at] = raw["message"]
            return Unjudged(at, raw["message"])
        if kind == "description":
            self.description = Description(
                raw["problem"], raw["device"], dict(raw["set"]), tuple(raw["signature"])
            )
        elif kind == "error":
            return self._take_error(raw)
        elif kind == ENDED:
            return self._take_end(raw)
        elif kind == "done":
            self.finished = True
        return None

    def verdicts(self) -> List[Verdict]:
        """All verdicts, in the candidates' order. Raises the error that stands in their place."""
        self.check()
        found = [verdict for verdict in self._verdicts if verdict is not None]
        if len(found) != len(self._candidates):
            raise InternalError("the worker left out a verdict", self._verdicts)
        return found

    def check(self) -> None:
        """Raises the error that the request ended with, if any."""
        if self.failure is not None:
            self.failure.verdicts = list(self._verdicts)
            raise self.failure

    def _take_error(self, raw: Mapping[str, Any]) -> Optional[Event]:
        kind, message, code = raw["kind"], raw["message"], raw.get("code")
        passing = self._begun and not (self.repeated or self._unjudged or code)
        if kind == "environment" and passing:
            return self._repeat(f"the request is repeated after an error of the machine: {message}")
        return self._end(error_of_kind(kind, message, code, self._verdicts))

    def _take_end(self, raw: Mapping[str, Any]) -> Optional[Event]:
        how = raw["message"]
        if not raw["ready"] and raw["code"] > 0:
            return self._end(error_of_exit(raw["code"], raw["stderr"] or f"assay worker: {how}"))
        if self.repeated:
            told = f"\n{raw['stderr']}" if raw["stderr"] else ""
            return self._end(WorkerDied(f"the worker died twice under this request: {how}{told}"))
        return self._repeat(f"the worker was lost: {how}. Another one repeats the request")

    def _missing(self) -> List[int]:
        places = range(len(self._candidates))
        return [i for i in places if self._verdicts[i] is None and i not in self._unjudged]

    def _repeat(self, message: str) -> Optional[Event]:
        if self._candidates and not self._missing():
            self.finished = True  # all was said but `done`
            return None
        self.repeated = self.again = True
        return Repeated(message)

    def _end(self, failure: AssayError) -> Optional[Event]:
        self.failure, self.finished = failure, True
        return None
