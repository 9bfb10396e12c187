"""Fixtures of the tests on a real GPU; each verdict is kept as a raw result, and so is what passed:
a test that passed with the same judge, and is in a file that did not change, is not run again.
"""
import functools
import hashlib
import json
import os
import pathlib
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ASSAY = os.environ.get("ASSAY_BINARY", str(ROOT / "build" / "release" / "assay"))
RESULTS = os.environ.get("ASSAY_GPU_RESULTS")
CORRECT = ("faster", "tie", "slower", "correct", "unsettled")


def support_folder():
    """lib/assay, beside the program in a build tree, and beside its folder as installed."""
    program = pathlib.Path(ASSAY).resolve()
    for folder in (program.parent, program.parent.parent):
        if (folder / "lib" / "assay" / "libassay_host.so").exists():
            return folder / "lib" / "assay"
    raise FileNotFoundError(f"no lib/assay beside {program}")


@functools.cache
def program_hash():
    """Of the program, and of what it runs in sandboxes."""
    digest = hashlib.sha256(pathlib.Path(ASSAY).read_bytes())
    for path in sorted(support_folder().rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(path.read_bytes())
    return digest


@functools.cache
def judge_hash(path):
    """Of the program, and of the tests in this file: what a result of one of them is of."""
    digest = program_hash().copy()
    for source in (pathlib.Path(__file__), path):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def keep(row):
    """Appends a raw result, at once: tests may run side by side."""
    if not RESULTS:
        return
    file = os.open(RESULTS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        line = json.dumps(row).replace(f"{ROOT}/", "").encode() + b"\n"
        assert os.write(file, line) == len(line), "no room is left for results"
    finally:
        os.close(file)


def in_brief(verdict):
    """A verdict as a raw result: without samples, draws and kernels."""
    kept = ("created", "outcome", "message", "foul", "speed", "libraries", "cost")
    return {
        "gpu": verdict["machine"]["gpu"],
        "problem": verdict["problem"]["name"],
        "set": verdict["problem"].get("set"),
        "candidate": pathlib.Path(verdict["candidate"]["path"]).name,
    } | {key: verdict[key] for key in kept}


def rows_of_tests():
    if not RESULTS or not os.path.exists(RESULTS):
        return []
    with open(RESULTS, encoding="utf-8") as file:
        return [row for row in map(json.loads, file) if "passed" in row]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    if not RESULTS:
        return
    judges = {item.nodeid: judge_hash(item.path) for item in items}
    keep({"tests": judges})
    last = {row["test"]: row for row in rows_of_tests() if row["judge"] == judges.get(row["test"])}
    passed = {test for test, row in last.items() if row["passed"]}
    again = [item for item in items if item.nodeid not in passed]
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in passed])
    items[:] = again


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    report = (yield).get_result()
    if not RESULTS or (report.when != "call" and not (report.failed or report.skipped)):
        return
    row = {
        "test": item.nodeid,
        "judge": judge_hash(item.path),
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "passed": report.passed,
        "skipped": str(report.longrepr[2]) if report.skipped else None,
        "failure": str(report.longrepr)[-4000:] if report.failed else None,
        "seconds": round(report.duration, 2),
    }
    keep(row)


@pytest.fixture
def judge_all(tmp_path, request):
    """judge_all([(name, source), ...], ...) judges several candidates in one call, which builds
    them side by side; returns their verdicts."""

    def run(candidates, problem="softmax", options=(), size="small", timeout_s=240):
        paths = [tmp_path / name for name, _ in candidates]
        for path, (_, source) in zip(paths, candidates):
            path.write_text(source)
        folders = {"XDG_STATE_HOME": "state", "XDG_DATA_HOME": "data"}
        folders = {name: str(tmp_path / part) for name, part in folders.items()}
        environment = dict(os.environ, **folders)
        process = subprocess.run(
            [ASSAY, "judge", problem, *map(str, paths), "--device", "cuda", "--json", "-q"]
            + (["--size", size] if size else [])
            + list(options),
            capture_output=True,
            text=True,
            timeout=timeout_s,
            env=environment,
        )
        assert process.stdout, process.stderr
        found = json.loads(process.stdout)
        verdicts = found if len(paths) > 1 else [found]
        assert len(verdicts) == len(paths), process.stderr
        for verdict in verdicts:
            assert verdict["schema"] == "assay.verdict/1", verdict  # an error stands in its place
            keep({"test": request.node.nodeid, "verdict": in_brief(verdict)})
            assert "NVIDIA" in verdict["machine"]["gpu"]
        return verdicts

    return run


@pytest.fixture
def judge(judge_all):
    """judge(name, source, ...) judges one candidate and returns the verdict."""

    def run(name, source, *arguments, **options):
        return judge_all([(name, source)], *arguments, **options)[0]

    return run


def assert_right(verdict):
    assert verdict["correctness"]["passed"] and verdict["outcome"] in CORRECT, verdict["message"]
