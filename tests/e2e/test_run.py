"""assay run: a KernelBench run folder, judged whole, cut off and gone on with, and scored."""
import json
import os
import signal
import time

import pytest

from conftest import GOOD, INTERRUPTED, USAGE, fits

RELU = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super(Model, self).__init__()

    def forward(self, x):
        return torch.relu(x)

batch_size = 16
dim = 16384

def get_inputs():
    return [torch.randn(batch_size, dim)]

def get_init_inputs():
    return []
"""
SCALE = RELU.replace("torch.relu(x)", "x * 3.0")
RIGHT = (
    "import torch\nclass ModelNew(torch.nn.Module):\n"
    "    def forward(self, x):\n        return {}\n"
)


@pytest.fixture
def run_folder(tmp_path):
    """A checkout with two problems, and a run folder with four candidates and one too many."""
    for name, text in (("19_ReLU", RELU), ("5_Scale", SCALE)):
        path = tmp_path / "KernelBench" / "KernelBench" / "level1" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "sizes.toml").write_text(
        "[level1]\n19_ReLU = { dim = 256 }\n5_Scale = { dim = 256 }\n"
    )
    run = tmp_path / "runs" / "model"
    run.mkdir(parents=True)
    for problem, sample, text in (
        (19, 0, RIGHT.format("torch.clamp(x, min=0)")),
        (19, 1, RIGHT.format("torch.clamp(x, min=0.1)")),
        (5, 0, RIGHT.format("x + x + x")),
        (5, 1, "def broken(:\n"),
        (77, 0, "class ModelNew: pass\n"),
    ):
        (run / f"level_1_problem_{problem}_sample_{sample}_kernel.py").write_text(text)
    return run


@pytest.fixture
def run(assay, run_folder, tmp_path):
    def call(*options, start=False):
        arguments = ["run", run_folder, "--problems", tmp_path / "KernelBench", "--sizes"]
        arguments += [tmp_path / "sizes.toml", "--devices", "cpu", "--threads", "1"]
        return (assay.start if start else assay)(*arguments, "--correctness-only", *options)

    return call


def rows_of(folder):
    return [json.loads(line) for line in (folder / "verdicts.jsonl").read_text().splitlines()]


def outcomes(folder):
    return {
        (row["number"], row["sample"]): row["verdict"]["outcome"] for row in rows_of(folder)
    }


EXPECTED = {(5, 0): "correct", (5, 1): "build_failed", (19, 0): "correct", (19, 1): "wrong"}


def test_a_run_folder_is_judged_gone_on_with_and_scored(run, run_folder, assay):
    plan = run("--dry-run")
    assert plan.code == USAGE and "4 candidates for 2 problems" in plan.out, plan
    assert "has no problem 77 of level 1" in plan.out, plan
    assert not (run_folder / "verdicts.jsonl").exists()

    first = run()
    assert first.code == USAGE, first  # problem 77
    assert outcomes(run_folder) == EXPECTED
    for row in rows_of(run_folder):
        fits(row, "run")
        fits(row["verdict"], "verdict")
    assert "2 correct, 1 wrong, 1 build_failed" in first.out, first

    theirs = json.loads((run_folder / "eval_results.json").read_text())
    assert list(theirs) == ["5", "19"]
    assert [sample["sample_id"] for sample in theirs["19"]] == [1]
    assert theirs["5"][0]["compiled"] is False and theirs["5"][0]["runtime"] == -1
    assert "correct without a time" in first.err and "5_Scale #0, 19_ReLU #0" in first.err, first

    page = run_folder / "report.html"
    assert "19_ReLU" in page.read_text() and f"wrote {page}" in first.err, first

    # Nothing is judged twice; a changed file is judged anew.
    before = (run_folder / "verdicts.jsonl").read_bytes()
    again = run()
    assert "4 of 4 were judged before" in again.err, again
    assert (run_folder / "verdicts.jsonl").read_bytes() == before
    mended = run_folder / "level_1_problem_19_sample_1_kernel.py"
    mended.write_text(RIGHT.format("x * (x > 0)"))
    (run_folder / "level_1_problem_77_sample_0_kernel.py").unlink()
    last = run()
    assert last.code == GOOD and "3 of 4 were judged before" in last.err, last
    assert (run_folder / "verdicts.jsonl").read_bytes().startswith(before)
    assert outcomes(run_folder)[(19, 1)] == "correct"

    score = assay("score", run_folder, "--json")
    assert score.code == GOOD, score
    assert json.loads(score.out)["asked"] == 2


def test_results_of_others_stay_and_are_compared(run, run_folder):
    page = run_folder / "report.html"
    page.write_text("<html>mine</html>")
    path = run_folder / "eval_results.json"
    text = '{"19": [{"sample_id": 1, "compiled": true, "correctness": true, "runtime": 1.5}]}'
    path.write_text(text)
    ended = run("--only", "*_19_*")
    assert ended.code == GOOD, ended
    assert path.read_text() == text
    assert "1 of 1 samples end otherwise here" in ended.out, ended
    assert "19_ReLU #1: theirs correct, 1.5 ms; ours not correct: wrong" in ended.out, ended
    ours = json.loads((run_folder / "eval_results_assay.json").read_text())
    assert len(ours["19"]) == 1
    assert page.read_text() == "<html>mine</html>"
    assert "19_ReLU" in (run_folder / "report_assay.html").read_text()


def test_a_killed_run_goes_on_where_it_was(run, run_folder, leftovers):
    rows = run_folder / "verdicts.jsonl"
    process = run(start=True)
    deadline = time.monotonic() + 60
    while not (rows.exists() and rows.read_bytes().count(b"\n") >= 1):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.communicate()
    kept = rows.read_bytes()
    kept = kept[: kept.rindex(b"\n") + 1]
    run()
    assert rows.read_bytes().startswith(kept)
    keys = [row["key"] for row in rows_of(run_folder)]
    assert len(keys) == len(set(keys)) == 4
    assert outcomes(run_folder) == EXPECTED
    assert not leftovers()


def test_ctrl_c_keeps_what_is_done_and_a_second_run_waits_outside(run, run_folder, leftovers):
    process = run(start=True)
    deadline = time.monotonic() + 60
    while not (run_folder / "run.json").exists():
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.01)
    second = run()
    assert second.code != GOOD and "is in use: another assay run" in second.err, second
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == INTERRUPTED, err
    assert not leftovers()
