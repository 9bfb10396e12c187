"""The verdict on a candidate as a frozen dataclass: the parts of docs/verdict.md that programs use.

All else of the record is in `Verdict.raw`.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
from typing import Any, Dict, Mapping, Optional, Tuple, Type, TypeVar

from ._errors import InternalError

SCHEMA = "assay.verdict/1"
_LOG_CHARACTERS_MAX = 4000  # of a build's log, in feedback


class Outcome(str, enum.Enum):
    """What was decided. Each outcome is also its text: `verdict.outcome == "faster"`."""

    FASTER = "faster"
    SLOWER = "slower"
    TIE = "tie"
    NOT_FASTER = "not_faster"
    CORRECT = "correct"
    UNSETTLED = "unsettled"
    WRONG = "wrong"
    WEIGHTS_DIFFER = "weights_differ"
    BUILD_FAILED = "build_failed"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"
    OUT_OF_MEMORY = "out_of_memory"
    FOUL = "foul"

    __str__ = str.__str__


class Decision(str, enum.Enum):
    """What the speed gate's sequential test decided against its threshold."""

    FASTER = "faster"
    SLOWER = "slower"
    TIE = "tie"
    NOT_FASTER = "not_faster"
    UNSETTLED = "unsettled"

    __str__ = str.__str__


class Cause(str, enum.Enum):
    """A fact behind an outcome."""

    LONG_CALLS = "long_calls"
    BLIND_PROBLEM = "blind_problem"
    MEMORY_LIMIT = "memory_limit"
    SCARCE_MEMORY = "scarce_memory"

    __str__ = str.__str__


@dataclasses.dataclass(frozen=True)
class Mismatch:
    """The first wrong element of an output.

    `index`: one number a dimension. `expected`, `got`: None where they are not finite.
    `share_wrong`: share of that output's elements that are wrong, 0 to 1.
    """

    output: str
    index: Tuple[int, ...]
    expected: Optional[float]
    got: Optional[float]
    share_wrong: Optional[float]


@dataclasses.dataclass(frozen=True)
class Correctness:
    """The correctness gate.

    `calls_checked`: calls whose outputs were compared. `error_ratio`: largest error over its bound
    (up to 1 passes), None where it is not finite. `max_abs_error`: in the output's own unit.
    `mistake`: the kind of the mistake, for programs; `hint`: a sentence about it, for people.
    """

    passed: bool
    calls_checked: int
    error_ratio: Optional[float]
    max_abs_error: Optional[float]
    precision_class: Optional[str]
    required_class: Optional[str]
    mistake: Optional[str]
    hint: Optional[str]
    note: Optional[str]
    first_mismatch: Optional[Mismatch]


@dataclasses.dataclass(frozen=True)
class Speed:
    """The speed gate, against the headline baseline.

    `speedup`: the baseline's time over the candidate's, a ratio, median over `pairs` pairs of fresh
    processes; `low` and `high`: its interval, of coverage `confidence`. `certified_speedup`: the
    largest threshold that these pairs are decided faster against, None if there is none.
    `smallest_visible`: the smallest gain that could have been seen, a factor. `time_us` and
    `baseline_time_us`: one call of each side, in microseconds.
    """

    baseline: str
    threshold: Optional[float]
    decision: Decision
    speedup: Optional[float]
    low: Optional[float]
    high: Optional[float]
    confidence: Optional[float]
    certified_speedup: Optional[float]
    smallest_visible: Optional[float]
    time_us: Optional[float]
    baseline_time_us: Optional[float]
    pairs: int
    note: Optional[str]


@dataclasses.dataclass(frozen=True, repr=False)
class Verdict:
    """The record of one judgement.

    `problem`, `candidate`: the problem's name, and the candidate's file as it was named.
    `line`: the line that keeps the candidate from building. `foul`: the rule that was broken.
    `percent_of_peak`: what the candidate reaches of this machine's measured ceilings, None before
    `assay doctor` measured them. `judged_s`: what the judgement took, in seconds. `log`: what the
    compiler and the candidate printed; it may hold any characters. `raw`: the whole record as a
    dictionary (docs/verdict.schema.json); do not change it.
    """

    id: str
    created: datetime.datetime
    outcome: Outcome
    message: str
    cause: Optional[Cause]
    line: Optional[int]
    problem: str
    candidate: str
    correctness: Optional[Correctness]
    speed: Optional[Speed]
    foul: Optional[str]
    percent_of_peak: Optional[float]
    judged_s: Optional[float]
    log: str
    raw: Dict[str, Any] = dataclasses.field(compare=False)

    def __repr__(self) -> str:
        name = self.candidate.rsplit("/", 1)[-1]
        speed = "" if self.speedup is None else f", {self.speedup:.2f}x"
        return f"<Verdict {self.id}: {name} on {self.problem}: {self.outcome}{speed}>"

    @property
    def correct(self) -> bool:
        """Whether every checked call was right, and no rule was broken."""
        return self.correctness is not None and self.correctness.passed and self.foul is None

    @property
    def faster(self) -> bool:
        """Whether the outcome is `faster`."""
        return self.outcome is Outcome.FASTER

    @property
    def speedup(self) -> Optional[float]:
        """The measured speedup over the headline baseline, a ratio; None without a time."""
        return self.speed.speedup if self.speed else None

    @property
    def certified_speedup(self) -> Optional[float]:
        """The speedup that the pairs prove, a ratio; None where they prove none."""
        return self.speed.certified_speedup if self.speed else None

    @property
    def score(self) -> float:
        """A number to climb by: 0 unless correct, else the certified speedup, or the measured one
        up to 1 where no gain is certified. So luck earns nothing.
        """
        if not self.correct:
            return 0.0
        return max(self.certified_speedup or 0.0, min(self.speedup or 0.0, 1.0))

    @property
    def feedback(self) -> str:
        """What whoever wrote the candidate should read, as one text: message, hint, build log."""
        told = self.message
        parts = [told if told.startswith(self.outcome) else f"{self.outcome}: {told}"]
        hint = self.correctness.hint if self.correctness else None
        if hint and hint not in told:
            parts.append(hint)
        if self.outcome is Outcome.BUILD_FAILED:
            parts.append(self.log[-_LOG_CHARACTERS_MAX:])
        return "\n".join(parts)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Verdict:
        """Reads a record. Raises InternalError for another schema, or an outcome of a later one."""
        if raw.get("schema") != SCHEMA:
            raise InternalError(f"a verdict of {raw.get('schema')}, where {SCHEMA} is known")
        roofline = raw.get("roofline") or {}
        cause = raw.get("cause")
        created = str(raw["created"]).replace("Z", "+00:00")
        return cls(
            id=raw["id"],
            created=datetime.datetime.fromisoformat(created),
            outcome=_named(Outcome, raw["outcome"]),
            message=raw["message"],
            cause=None if cause is None else _named(Cause, cause),
            line=raw.get("line"),
            problem=raw["problem"]["name"],
            candidate=raw["candidate"]["path"],
            correctness=_correctness(raw.get("correctness")),
            speed=_speed(raw.get("speed")),
            foul=(raw.get("foul") or {}).get("rule"),
            percent_of_peak=roofline.get("percent_of_peak"),
            judged_s=(raw.get("cost") or {}).get("total_s"),
            log=raw.get("log") or "",
            raw=dict(raw),
        )

    def _repr_html_(self) -> str:
        """The card, for notebooks."""
        from ._card import html_of

        return html_of(self)


_Named = TypeVar("_Named", bound=enum.Enum)


def _named(kind: Type[_Named], text: str) -> _Named:
    try:
        return kind(text)
    except ValueError as error:
        raise InternalError(f"{kind.__name__} {text!r} is of a later version of Assay") from error


def _correctness(raw: Optional[Mapping[str, Any]]) -> Optional[Correctness]:
    if raw is None:
        return None
    wrong = raw.get("first_mismatch")
    mismatch = None
    if wrong is not None:
        mismatch = Mismatch(
            output=wrong["output"],
            index=tuple(wrong["index"]),
            expected=wrong["expected"],
            got=wrong["got"],
            share_wrong=wrong["share_wrong"],
        )
    names = [field.name for field in dataclasses.fields(Correctness)]
    fields: Dict[str, Any] = {name: raw.get(name) for name in names}
    fields["first_mismatch"] = mismatch
    return Correctness(**fields)


def _speed(raw: Optional[Mapping[str, Any]]) -> Optional[Speed]:
    if raw is None or raw["headline"] not in raw["baselines"]:
        return None
    baseline = raw["baselines"][raw["headline"]]

    def microseconds(name: str) -> Optional[float]:
        time_ns = baseline.get(name)
        return None if time_ns is None else time_ns / 1000

    return Speed(
        baseline=raw["headline"],
        threshold=raw.get("threshold"),
        decision=_named(Decision, baseline["decision"]),
        speedup=baseline.get("speedup"),
        low=baseline["ci"][0],
        high=baseline["ci"][1],
        confidence=baseline.get("confidence"),
        certified_speedup=baseline.get("certified_speedup"),
        smallest_visible=baseline.get("smallest_visible"),
        time_us=microseconds("candidate_time_ns"),
        baseline_time_us=microseconds("time_ns"),
        pairs=baseline["pairs"],
        note=baseline.get("note"),
    )
