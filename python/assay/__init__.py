"""Assay judges compute kernels: whether they are correct, whether they are faster, how sure.

    verdict, = assay.judge("softmax", "mine.cpp", size="small")
    print(verdict.outcome, verdict.speedup)

    with assay.Session(size="small") as session:
        for path in paths:
            print(session.judge("softmax", path)[0].score)

docs/python.md is the manual. Times end with their unit; speedups are ratios, over 1 for the faster.
"""

from ._episodes import Episodes
from ._errors import (
    AssayError,
    InternalError,
    Interrupted,
    MachineError,
    TimedOut,
    UsageError,
    WorkerDied,
    WorkerTrouble,
)
from ._events import Description, Event, Judged, Progress, Repeated, Unjudged
from ._inputs import Source
from ._run import Problem, RunRow, problems, run, score
from ._session import Session, judge
from ._verdict import Cause, Correctness, Decision, Mismatch, Outcome, Speed, Verdict

__all__ = [
    "AssayError",
    "Cause",
    "Correctness",
    "Decision",
    "Description",
    "Episodes",
    "Event",
    "InternalError",
    "Interrupted",
    "Judged",
    "MachineError",
    "Mismatch",
    "Outcome",
    "Problem",
    "Progress",
    "Repeated",
    "RunRow",
    "Session",
    "Source",
    "Speed",
    "TimedOut",
    "Unjudged",
    "UsageError",
    "Verdict",
    "WorkerDied",
    "WorkerTrouble",
    "judge",
    "problems",
    "run",
    "score",
]
