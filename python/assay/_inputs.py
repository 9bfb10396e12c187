"""What a caller may give as problem or candidate, turned into what the worker takes.

A path is a pathlib.Path, or a text that names an existing file. A text of several lines is source.
A problem may also be the name of one in an installed suite, or a class or module whose file has
`get_inputs`.
"""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import inspect
import os
import pathlib
import re
import sys
import types
from typing import Callable, Dict, List, Mapping, Sequence, Union

from ._errors import UsageError

# docs/worker.schema.json, without `problem`; a test compares them.
TERMS = (
    "size", "set", "gradients", "device", "baseline", "against", "p", "bound", "threads", "python",
    "precision", "tolerance", "weights", "state", "special_values", "skip_draws", "one_size",
    "no_replay", "probe", "profile", "timeout_s", "build_timeout_s", "futility", "budget_s",
    "sustained_s", "memory",
)  # fmt: skip
_JOINED = ("baseline", "skip_draws")  # lists that the program takes with commas

_ANSWER = re.compile(r"^```", re.MULTILINE)
_PYTHON = re.compile(
    r"^(?:import \w|from [\w.]+ import |class \w+.*:\s*(?:#.*)?$|def \w+\(|@\w)", re.MULTILINE
)
_CUDA = re.compile(r"__global__|^//! *launch", re.MULTILINE)
_CPP = re.compile(r"^\s*#\s*include|ASSAY_KERNEL", re.MULTILINE)

# The first that fits: code in Python often has CUDA or C++ in its texts, and an answer any code.
_FORMS = (
    (_ANSWER, "answer.md"),
    (_PYTHON, "source.py"),
    (_CUDA, "source.cu"),
    (_CPP, "source.cpp"),
)


@dataclasses.dataclass(frozen=True)
class Source:
    """A candidate's text under a name, whose ending says its form: .cpp, .c, .cu or .py.

    A model's answer with a fenced block of code is one, too, under a name such as answer.md.
    """

    text: str
    name: str


ProblemLike = Union[str, "os.PathLike[str]", type, types.ModuleType]
CandidateLike = Union[str, "os.PathLike[str]", Source]


def is_source(text: str) -> bool:
    """Whether a text is source: it has several lines. No other text is."""
    return "\n" in text


def guess_name(text: str) -> str:
    """A name for a candidate's source, by its language. Raises UsageError if that is open."""
    for pattern, name in _FORMS:
        if pattern.search(text):
            return name
    raise UsageError("the language of a candidate's source is open: give assay.Source(text, name)")


def file_of(path: Union[str, "os.PathLike[str]"], what: str, or_folder: bool = False) -> str:
    """The absolute path of an existing file, or a folder. Raises UsageError."""
    file = pathlib.Path(path)
    if not (file.is_file() or (or_folder and file.is_dir())):
        kinds = "file and no folder" if or_folder else "file"
        raise UsageError(f"{what} {os.fspath(path)!r} is no {kinds}")
    return str(file.absolute())


def problem_of(problem: object, keep: Callable[[str, str], str]) -> str:
    """The worker's `problem`. `keep(text, ending)` writes a source to a file and names it."""
    if isinstance(problem, (type, types.ModuleType)):
        return _file_of_class(problem)
    if isinstance(problem, os.PathLike):
        return file_of(problem, "the problem")
    if not isinstance(problem, str):
        raise UsageError(
            "a problem is a path, a name, source text, or a class or module with get_inputs "
            f"in its file, not {type(problem).__name__}"
        )
    if is_source(problem):
        return keep(problem, ".py")
    if os.path.isfile(problem) or "/" in problem or problem.endswith(".py"):
        return file_of(problem, "the problem")
    return problem


def _file_of_class(given: Union[type, types.ModuleType]) -> str:
    named = f"{type(given).__name__ if isinstance(given, types.ModuleType) else 'class'} "
    named += given.__name__
    module = sys.modules.get(given.__module__) if isinstance(given, type) else given
    try:
        file = inspect.getsourcefile(given)
    except (TypeError, OSError):
        file = None
    if file is None or not os.path.isfile(file):
        raise UsageError(f"{named} is in no file: give the problem's path or its source text")
    if not hasattr(module, "get_inputs"):
        raise UsageError(f"{named} is no problem: its file has no get_inputs")
    return os.path.abspath(file)


def candidate_of(candidate: object) -> Dict[str, str]:
    """One entry of the worker's `candidates`."""
    if isinstance(candidate, Source):
        return {"name": candidate.name, "source": candidate.text}
    if isinstance(candidate, str) and is_source(candidate):
        return {"name": guess_name(candidate), "source": candidate}
    if isinstance(candidate, (str, os.PathLike)):
        return {"path": file_of(candidate, "the candidate", or_folder=True)}
    raise UsageError(
        f"a candidate is a path, source text or assay.Source, not {type(candidate).__name__}"
    )


Candidates = Union[CandidateLike, Sequence[CandidateLike]]


def candidates_of(candidates: Candidates) -> List[Dict[str, str]]:
    """The worker's `candidates`: of one, or of several. Raises UsageError for none."""
    if isinstance(candidates, (str, os.PathLike, Source)):
        candidates = [candidates]
    try:
        found = [candidate_of(each) for each in candidates]
    except TypeError as error:
        raise UsageError(f"candidates are a list, not {type(candidates).__name__}") from error
    if not found:
        raise UsageError("give at least one candidate")
    return found


def terms_of(given: Mapping[str, object], keep: Callable[[str, str], str]) -> Dict[str, object]:
    """The worker's terms but for the problem; those that are None are left out."""
    terms: Dict[str, object] = {}
    for name, value in given.items():
        if name not in TERMS:
            near = difflib.get_close_matches(name, TERMS, 1)
            hint = f": did you mean {near[0]}?" if near else f"; there are {', '.join(TERMS)}"
            raise UsageError(f"there is no term {name}{hint}")
        if value is None:
            continue
        if name == "against":
            entry = candidate_of(value)
            ending = pathlib.PurePath(entry.get("name", "")).suffix
            value = entry.get("path") or keep(entry["source"], ending)
        elif name in _JOINED and isinstance(value, (list, tuple)):
            value = ",".join(str(each) for each in value)
        elif isinstance(value, os.PathLike):
            value = os.fspath(value)
        terms[name] = value
    return terms


def source_name(text: str, ending: str) -> str:
    """A file's name for a source: equal sources have equal names, and so share a session."""
    return f"source_{hashlib.sha256(text.encode()).hexdigest()[:12]}{ending}"
