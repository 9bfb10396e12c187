"""Problems that let wrong candidates pass are named, with what passes and what would mend them;
sound ones are not.
"""

import json
import signal
import subprocess
import time

import pytest

from conftest import ASSAY, ENVIRONMENT, INTERRUPTED, ROOT, USAGE, fits

DEGENERATE = 3
CLEAN = 0


def problem(forward, inputs="[torch.randn(16, 64)]", arguments="x", init="pass"):
    return f"""
import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 16


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, {arguments}):
        return {forward}


def get_inputs():
    return {inputs}


def get_init_inputs():
    return []
"""


LABELLED = "[torch.randn(64, 8), torch.zeros(64, dtype=torch.long)]"
ALLCLOSE = ["--tolerance", "allclose:1e-2"]

# Name -> (source, arguments, finding, subject, what the mend says or None where there is none).
MADE_DEGENERATE = {
    "constant_output": (
        problem("torch.softmax(x, 1).sum(1, keepdim=True) * 3"),
        [],
        "constant-output",
        "out",
        None,
    ),
    "zero_output": (
        problem("(x - x.mean(1, keepdim=True)).abs() * 0"),
        [],
        "zero-output",
        "out",
        None,
    ),
    "zeros_within_tolerance": (
        problem("torch.sigmoid(x) * 1e-3"),
        ALLCLOSE,
        "zero-output",
        "out",
        None,
    ),
    # Only the ordinary draws let zeros pass: gate 1's own others would mend it.
    "zeros_within_tolerance_on_ordinary_draws": (
        problem("torch.softmax(x, 1)", inputs="[torch.rand(4, 4096)]"),
        [*ALLCLOSE, "--ordinary-only"],
        "zero-output",
        "out",
        "draw",
    ),
    "ignored_input": (
        problem(
            "x * 2 + 0 * y",
            arguments="x, y",
            inputs="[torch.randn(16, 64), torch.rand(16, 64)]",
        ),
        ["--ordinary-only"],
        "ignores-input",
        "y",
        None,
    ),
    "integer_targets": (
        problem("F.cross_entropy(x, target)", arguments="x, target", inputs=LABELLED),
        [],
        "ignores-input",
        "target",
        "integers 0 and 1",
    ),
    "integer_output": (
        problem("(x > 1e30).long()", inputs="[torch.randn(16, 64).clamp(-3, 3)]"),
        ["--ordinary-only"],
        "zero-output",
        "out",
        None,
    ),
    "ignored_weight": (
        problem(
            "F.layer_norm(x + self.shift[0], (64,))",
            init="self.shift = nn.Parameter(torch.randn(4))",
        ),
        [],
        "ignores-weights",
        "shift",
        None,
    ),
    "branch_not_taken": (
        problem("torch.relu(x)", inputs="[torch.rand(16, 64)]"),
        ["--ordinary-only"],
        "survivor",
        None,
        "'signs'",
    ),
    "random_dropout": (
        problem("self.drop(x)", init="self.drop = nn.Dropout(0.3)"),
        [],
        "random-reference",
        None,
        "eval()",
    ),
    "rounding_alone": (
        problem("(x + 1e9) - (x.mean(1, keepdim=True) + 1e9)"),
        [],
        "meaningless-reference",
        None,
        None,
    ),
}

HEALTHY = {
    "relu": problem("torch.relu(x)"),
    "cross_entropy": problem(
        "F.cross_entropy(x, target)",
        arguments="x, target",
        inputs="[torch.randn(64, 8), torch.randint(0, 8, (64,))]",
    ),
    "labels": problem("x.argmax(1)"),
    "linear": problem("self.layer(x) * factor", "[torch.randn(16, 64), 1.5]", "x, factor").replace(
        "pass", "self.layer = nn.Linear(64, 24)"
    ),
}


def audit(assay, *arguments, **keywords):
    run = assay("audit", *arguments, "--json", "--seed", 3, **keywords)
    if run.out:
        run.audit = json.loads(run.out)
        fits(run.audit, "error" if run.audit["schema"] == "assay.error/1" else "audit")
        assert run.audit["exit_code"] == run.code, run
    return run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One folder with the healthy problems, as KernelBench has them: files beside each other."""
    path = tmp_path_factory.mktemp("healthy")
    for number, (name, source) in enumerate(HEALTHY.items(), start=1):
        (path / f"{number}_{name}.py").write_text(source)
    (path / "helpers.py").write_text("ROWS = 3\n")
    return path


@pytest.mark.parametrize("name", MADE_DEGENERATE)
def test_a_degenerate_problem_is_named_with_what_passes(assay, write, name):
    source, arguments, finding, subject, mend = MADE_DEGENERATE[name]
    run = audit(assay, write(f"{name}.py", source), *arguments)
    assert run.code == DEGENERATE, run
    (audited,) = run.audit["problems"]
    assert audited["result"] == "degenerate" and audited["name"] == name, run
    found = [row for row in audited["findings"] if row["finding"] == finding]
    assert found and audited["findings"][0]["finding"] == finding, run
    if subject:
        assert subject in [row["subject"] for row in found], run
    if mend:
        assert mend in found[0]["mend"], run
    if finding in ("zero-output", "constant-output"):
        assert len(audited["findings"]) == 1, run  # all else that passes follows from it
        assert found[0]["margin"] <= 1, run


def test_healthy_problems_are_not_named(assay, folder):
    run = audit(assay, folder)
    assert run.code == CLEAN, run
    names = [audited["name"] for audited in run.audit["problems"]]
    assert names == ["1_relu", "2_cross_entropy", "3_labels", "4_linear"], run
    for audited in run.audit["problems"]:
        assert audited["result"] == "clean" and audited["killed"] >= 6, run
        assert audited["survived"] == 0 and audited["weakest"], run


def test_zeros_that_pass_on_its_own_inputs_are_told_though_other_draws_show_them(assay, write):
    """Timed calls are made of a problem's own inputs."""
    source, arguments, *_ = MADE_DEGENERATE["zeros_within_tolerance_on_ordinary_draws"]
    run = audit(assay, write("softmax.py", source), *arguments[:2])
    assert run.code == DEGENERATE, run
    audited = run.audit["problems"][0]
    (zeros,) = [m for m in audited["mutants"] if m["family"] == "zeros"]
    assert zeros["result"] == "killed" and zeros["passes_ordinary"], run
    assert audited["findings"][0]["finding"] == "zero-output", run
    assert "gate 1's draw" in audited["findings"][0]["mend"], run


def test_mending_the_problem_as_told_makes_it_clean(assay, write):
    source = MADE_DEGENERATE["integer_targets"][0]
    mended = source.replace("torch.zeros(64, dtype=torch.long)", "torch.randint(0, 2, (64,))")
    assert mended != source
    run = audit(assay, write("mended.py", mended))
    assert run.code == CLEAN, run


def test_set_reaches_the_problems_that_have_the_constant(assay, folder, write):
    sized = write("sized.py", HEALTHY["relu"].replace("randn(16", "randn(ROWS").replace("16", "9"))
    other = write("other.py", HEALTHY["relu"].replace("ROWS = 16", ""))
    run = audit(assay, sized, other, "--set", "ROWS=7")
    assert run.code == CLEAN, run
    assert [p["set"] for p in run.audit["problems"]] == [{"ROWS": "7"}, {}], run
    run = audit(assay, sized, other, "--set", "COLUMNS=7")
    assert run.code == USAGE and "none of the 2 problems has a constant COLUMNS" in run.err, run


def test_a_problem_that_cannot_be_loaded_is_an_error_line_not_a_finding(assay, write):
    broken = write("broken.py", HEALTHY["relu"].replace("torch.relu(x)", "torch.no_such(x)"))
    run = audit(assay, broken)
    assert run.code == USAGE, run
    assert run.audit["problems"][0]["result"] == "not-audited", run
    assert "broken.py line" in run.audit["problems"][0]["error"], run
    run = audit(assay, broken, write("fine.py", HEALTHY["relu"]))
    assert run.code == CLEAN, run
    run = audit(assay, "no_such_file.py")
    assert run.code == USAGE and "no_such_file.py" in run.err, run


def test_the_table_and_the_lines_say_the_same(assay, write):
    source, arguments, *_ = MADE_DEGENERATE["constant_output"]
    paths = [write("constant.py", source), write("fine.py", HEALTHY["relu"])]
    run = assay("audit", *paths)
    assert run.code == DEGENERATE, run
    assert "1 degenerate" in run.out and "constant-output" in run.out, run
    assert all(word in run.out for word in ("killed", "fine", "clean", "mend")), run
    run = assay("audit", *paths, "--jsonl")
    events = [json.loads(line) for line in run.out.splitlines()]
    for event in events:
        fits(event, "event")
    assert [event["event"] for event in events] == ["audit", "audit", "end"], run
    assert [event["audit"]["result"] for event in events[:2]] == ["degenerate", "clean"], run
    assert events[-1]["exit_code"] == DEGENERATE, run


def test_bad_requests_are_told_once(assay, folder):
    for extra, said in (
        (["--tolerance", "loose"], "loose"),
        (["--precision", "float12"], "float12"),
        (["--threads", "1000"], "cores"),
        (["--size", "tiny"], None),  # no suite describes these
    ):
        run = assay("audit", folder, *extra)
        assert run.code == USAGE, (extra, run)
        assert said is None or run.err.count(said) == 1, run
    run = assay("audit", folder, ASSAY_BWRAP="/no/such/bwrap")
    assert run.code == ENVIRONMENT, run


def test_an_interrupt_ends_it_with_what_is_done(assay, folder, leftovers):
    process = subprocess.Popen(
        [str(ASSAY), "audit", str(folder), "--jobs", "1", "--jsonl"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=assay.environment,
    )
    first = process.stdout.readline()
    process.send_signal(signal.SIGINT)
    begin = time.monotonic()
    rest, errors = process.communicate(timeout=60)
    assert process.returncode == INTERRUPTED, (first, rest, errors)
    assert time.monotonic() - begin < 20
    assert json.loads(first)["event"] == "audit" and "interrupted" in errors
    assert json.loads(rest.splitlines()[-1])["exit_code"] == INTERRUPTED
    assert not leftovers()


@pytest.mark.thorough
def test_the_projects_own_suite_has_no_degenerate_problem(assay):
    run = audit(assay, ROOT / "problems", "--size", "tiny", timeout=900)
    bad = [p for p in run.audit["problems"] if p["result"] != "clean"]
    told = [(p["name"], p["error"], p["findings"]) for p in bad]
    assert run.code == CLEAN and not bad, told
    assert len(run.audit["problems"]) >= 46
    # That nothing passes says little where nothing was tried.
    for audited in run.audit["problems"]:
        assert audited["killed"] >= 6 and audited["draws"] >= 3, audited["name"]
