"""Fixtures of the tests on a real GPU; each verdict is kept as a raw result."""
import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ASSAY = os.environ.get("ASSAY_BINARY", str(ROOT / "build" / "release" / "assay"))
RESULTS = os.environ.get("ASSAY_GPU_RESULTS")
CORRECT = ("faster", "tie", "slower", "unsettled")


@pytest.fixture
def judge(tmp_path, request):
    """judge(name, source, ...) writes a candidate, judges it and returns the verdict."""

    def run(name, source, problem="softmax", options=(), size="small", timeout_s=240):
        path = tmp_path / name
        path.write_text(source)
        environment = dict(os.environ, XDG_STATE_HOME=str(tmp_path / "state"))
        process = subprocess.run(
            [ASSAY, "judge", problem, str(path), "--device", "cuda", "--json", "-q"]
            + (["--size", size] if size else [])
            + list(options),
            capture_output=True,
            text=True,
            timeout=timeout_s,
            env=environment,
        )
        assert process.stdout, process.stderr
        verdict = json.loads(process.stdout)
        if RESULTS:
            with open(RESULTS, "a", encoding="utf-8") as file:
                file.write(json.dumps({"test": request.node.name, "verdict": verdict}) + "\n")
        assert "NVIDIA" in verdict["machine"]["gpu"]
        return verdict

    return run


def assert_right(verdict):
    assert verdict["correctness"]["passed"] and verdict["outcome"] in CORRECT, verdict["message"]
