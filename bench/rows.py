"""Raw results: rows of JSON that say which judge they are of, and when."""
import datetime
import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]


def _git(*arguments):
    process = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True)
    return process.stdout.strip()


def judge_commit():
    """The last commit that changed the judge; with '+' where it is changed since.
    ASSAY_JUDGE_COMMIT names it where there is no git.
    """
    if named := os.environ.get("ASSAY_JUDGE_COMMIT"):
        return named
    parts = ("src", "host", "include")
    changed = _git("status", "--porcelain", "--", *parts)
    return _git("log", "-1", "--format=%h", "--", *parts) + ("+" if changed else "")


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


def read(path):
    """The rows of a file; none where there is no file."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def append(path, row):
    """Adds a row, after the judge's commit and the date."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps({"judge": judge_commit(), "date": now(), **row}) + "\n")
