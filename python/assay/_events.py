"""What a session tells while a request is served."""

from __future__ import annotations

import dataclasses
from typing import Any, Dict, Optional, Tuple, Union

from ._verdict import Verdict


@dataclasses.dataclass(frozen=True)
class Progress:
    """Work goes on. `stage`: starting, drawing, building, correctness, speed, sustained or tools.

    `fraction`: share of the stage that is done, 0 to 1. `candidate`: its place in the request, or
    None for the stages of all.
    """

    stage: str
    text: str
    fraction: float
    candidate: Optional[int]


@dataclasses.dataclass(frozen=True)
class Judged:
    """A verdict is final. `candidate`: its place in the request."""

    candidate: int
    verdict: Verdict


@dataclasses.dataclass(frozen=True)
class Unjudged:
    """A candidate needs what this machine lacks, and gets no verdict."""

    candidate: int
    message: str


@dataclasses.dataclass(frozen=True)
class Repeated:
    """A worker was started again, or the request was repeated: why. WorkerTrouble warns of it."""

    message: str


Event = Union[Progress, Judged, Unjudged, Repeated]


@dataclasses.dataclass(frozen=True)
class Description:
    """What a problem's arguments are.

    `set`: constants that were changed. `signature`: a line an argument, in the order of the
    candidate's parameters, with dtype and shape: `input x float32[64, 1024]`.
    """

    problem: str
    device: str
    set: Dict[str, Any]
    signature: Tuple[str, ...]
