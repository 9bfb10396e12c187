"""Commands that end with one answer: whole runs, scores, the list of problems."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import tempfile
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple, Union

from ._program import PathLike, call
from ._verdict import Verdict


@dataclasses.dataclass(frozen=True)
class RunRow:
    """One candidate of a run (docs/run.schema.json).

    `level` and `number`: KernelBench's, 0 where there are none. `sample`: number of the attempt.
    `error`: why nobody judged it, None beside a verdict.
    """

    problem: str
    level: int
    number: int
    sample: int
    candidate: str
    verdict: Optional[Verdict]
    error: Optional[str]


@dataclasses.dataclass(frozen=True)
class Problem:
    """A problem of an installed suite. `sizes`: its constants by named size."""

    name: str
    level: int
    mechanism: str
    sizes: Dict[str, Dict[str, str]]


def options_of(given: Dict[str, Any]) -> List[str]:
    """Options of the program: `correctness_only=True` is --correctness-only, a list is joined by
    commas, and None and False leave the option out.
    """
    options: List[str] = []
    for name, value in given.items():
        if value is None or value is False:
            continue
        options.append("--" + name.replace("_", "-"))
        if value is not True:
            is_list = isinstance(value, (list, tuple))
            options.append(",".join(map(str, value)) if is_list else str(value))
    return options


def run(
    candidates: Union[PathLike, Sequence[PathLike]],
    *,
    results: Optional[PathLike] = None,
    limit_s: Optional[float] = None,
    program: Optional[PathLike] = None,
    **options: Any,
) -> List[RunRow]:
    """Judges a run: a folder of candidates, files, or a manifest (docs/run.md).

    `results`: the folder of the results, by default that of the candidates. `options` are those of
    `assay run`, such as problems="KernelBench", size="small", correctness_only=True. The same call
    again goes on where it was. Progress goes to stderr unless `quiet=True`.

    Returns the rows of `results`, one a candidate, the last where one was judged twice. Raises
    UsageError if the request is wrong, MachineError, TimedOut; after each the results stand.
    """
    paths = [candidates] if isinstance(candidates, (str, os.PathLike)) else list(candidates)
    folder = pathlib.Path(results if results is not None else paths[0])
    if results is None and not folder.is_dir():
        folder = folder.parent
    names = [os.fspath(path) for path in paths]
    arguments = ["run", *names, "--results", str(folder), *options_of(options)]
    rows = folder / "verdicts.jsonl"
    before = rows.stat().st_mtime_ns if rows.exists() else None
    quiet = bool(options.get("quiet"))
    try:
        call(arguments, program=program, limit_s=limit_s, quiet=quiet)
    except ValueError:  # a UsageError, also where only a part cannot be judged
        if not rows.exists() or rows.stat().st_mtime_ns == before:
            raise
    return read_rows(rows)


def read_rows(path: PathLike) -> List[RunRow]:
    """The rows of a run's verdicts.jsonl; of a candidate that was judged twice the last."""
    found: Dict[Tuple[object, ...], RunRow] = {}
    file = pathlib.Path(path)
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        raw = json.loads(line)
        verdict = raw.get("verdict")
        row = RunRow(
            problem=raw["problem"],
            level=raw["level"],
            number=raw["number"],
            sample=raw["sample"],
            candidate=raw["candidate"],
            verdict=None if verdict is None else Verdict.from_json(verdict),
            error=(raw.get("error") or {}).get("message"),
        )
        found[row.level, row.number, row.problem, row.sample, row.candidate] = row
    return list(found.values())


def score(
    verdicts: Union[PathLike, Iterable[Verdict]],
    *,
    program: Optional[PathLike] = None,
    **options: Any,
) -> Dict[str, Any]:
    """Scores a set of verdicts, or those of a file or folder (docs/score.md).

    `options` are those of `assay score`, such as suite="problems", level=1, p=[1, 2]. Returns the
    document `assay.score/1` (docs/score.schema.json): fast_p, pass@k, speedups, which are ratios.
    Raises UsageError for verdicts that do not go together in one score.
    """
    if isinstance(verdicts, (str, os.PathLike)):
        return _score_of(os.fspath(verdicts), program, options)
    with tempfile.TemporaryDirectory(prefix="assay-") as folder:
        path = os.path.join(folder, "verdicts.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(verdict.raw) + "\n" for verdict in verdicts)
        return _score_of(path, program, options)


def _score_of(path: str, program: Optional[PathLike], options: Dict[str, Any]) -> Dict[str, Any]:
    text = call(["score", path, "--json", *options_of(options)], program=program)
    document: Dict[str, Any] = json.loads(text)
    return document


def problems(*, program: Optional[PathLike] = None, **options: Any) -> List[Problem]:
    """The problems of the installed suites; `level` and `mechanism` take part of them."""
    listed = json.loads(call(["problems", "--json", *options_of(options)], program=program))
    names = ("name", "level", "mechanism", "sizes")
    return [Problem(**{name: each[name] for name in names}) for each in listed]
