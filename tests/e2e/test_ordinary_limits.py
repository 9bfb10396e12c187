"""Ordinary files at the limits: what needs a GPU or a module that is not here, what a candidate
prints, errors as JSON, time limits, slow references, and `assay explain`.
"""

import json
import re
import subprocess
import time

import pytest
from conftest import BUILD_FAILED, DIED, ENVIRONMENT, UNSETTLED, USAGE, WRONG, fits, spans

RELU = """
import time
import torch
import torch.nn as nn
ROWS, WIDTH = 8, 32
WAIT = 0.0
class Model(nn.Module):
    def forward(self, x):
        time.sleep(WAIT)
        return torch.relu(x)
def get_inputs():
    return [torch.randn(ROWS, WIDTH)]
def get_init_inputs():
    return []
"""

CANDIDATE = """
import torch
import torch.nn as nn
{head}
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        {init}
    def forward(self, x):
        {forward}
        return torch.relu(x)
"""

CUDA_INLINE = """
from torch.utils.cpp_extension import load_inline
module = load_inline(name="relu", cpp_sources="void relu();", functions=["relu"], cuda_sources='''
__global__ void k(float* x) { x[threadIdx.x] = fmaxf(x[threadIdx.x], 0.f); }
void relu() {}
''')
"""

# Of what is not here: the words of the message, of each candidate.
NOT_HERE = {
    "inline": (CUDA_INLINE, "pass", "pass", "CUDA"),
    "triton": ("import triton", "pass", "pass", "CUDA"),
    "init": ("", "self.zero = torch.zeros(1).cuda()", "pass", "CUDA"),
    "check": ("", "pass", "assert x.is_cuda", "CUDA"),
    "module": ("import no_such_kernels", "pass", "pass", "the module no_such_kernels"),
}


@pytest.fixture
def relu(write):
    return write("relu.py", RELU)


@pytest.fixture
def candidate(write):
    def write_candidate(name, head="", init="pass", forward="pass"):
        return write(f"{name}.py", CANDIDATE.format(head=head, init=init, forward=forward))

    return write_candidate


def test_what_is_not_here_is_no_verdict_on_a_candidate(assay, relu, candidate):
    paths = [candidate(name, *parts[:3]) for name, parts in NOT_HERE.items()]
    paths.insert(2, candidate("good", forward="print('x is', x[0, 0].item())"))
    paths.append(candidate("prints", "print('imported')", "pass", "print('a' * 300000); x = x + 1"))
    run = assay.judge(relu, *paths, "--correctness-only")
    assert run.code == ENVIRONMENT, run
    found = dict(zip(paths, json.loads(run.out), strict=True))
    for path, document in found.items():
        name = path.rsplit("/", 1)[1][:-3]
        if name in NOT_HERE:
            fits(document, "error")
            assert document["exit_code"] == ENVIRONMENT and name in document["message"]
            assert re.search(f"{NOT_HERE[name][3]}.*which is not here", document["message"]), run
            assert document["message"] in run.err
    good, prints = found[paths[2]], found[paths[-1]]
    fits(good, "verdict")
    assert good["outcome"] == "correct" and good["log"].count("x is") == 17, good["log"]
    assert prints["outcome"] == "wrong" and prints["log"].rstrip().endswith("aaa"), prints
    assert len(prints["log"]) < 20000


def test_errors_come_as_json_where_json_is_asked_for(assay, relu, candidate):
    good = candidate("good")
    for arguments in (
        ("judge", "no_such.py", good),
        ("judge", relu, "no_such.cpp"),
        ("judge", relu, good, "--set", "NOTHING=3"),
        ("judge", relu, good, "--no-such-option"),
        ("judge", relu),
        ("problems", "show", "no_such.py"),
        ("score", "no_such.json"),
    ):
        run = assay(*arguments, "--json")
        error = json.loads(run.out)
        fits(error, "error")
        assert run.code == error["exit_code"] == USAGE, run
        assert error["kind"] == "usage" and error["message"] in run.err
    run = assay("judge", "no_such.py", good, "--jsonl")
    event = json.loads(run.out)
    fits(event, "event")
    assert event["event"] == "error" and run.code == USAGE


def test_a_limit_ends_what_it_says_and_is_named(assay, relu, candidate):
    paths = [
        candidate("import", "while True: pass"),
        candidate("construct", init="import time; time.sleep(1000)"),
        candidate("call", forward="time = [0]\n        while True: time[0] += 1"),
    ]
    began = time.monotonic()
    run = assay.judge(relu, *paths, "--build-timeout", "4", "--timeout", "1")
    assert time.monotonic() - began < 60
    assert run.code == DIED, run
    verdicts = run.verdict
    assert [verdict["outcome"] for verdict in verdicts] == ["timed_out"] * 3, run
    for verdict, limit in zip(verdicts, ("4 s (--build-timeout)",) * 2 + ("(--timeout)",)):
        assert limit in verdict["message"], verdict["message"]


def test_on_a_slow_reference_what_is_known_is_said_first(assay, relu, candidate):
    broken = candidate("broken", init="self.zero = undefined_name")
    later = candidate("later", forward="x = self.undefined_attribute(x)")
    run = assay("judge", relu, broken, later, "--set", "WAIT=0.05", "--jsonl")
    assert run.code == BUILD_FAILED and "undefined_name" in run.out, run
    missing = "line 10: AttributeError: 'ModelNew' object has no attribute 'undefined_attribute'"
    assert missing in run.out, run
    assert "compiling" in run.out and "drawing" not in run.out, "no draw was needed"
    run = assay.judge(relu, candidate("good"), "--set", "WAIT=0.05", "--budget", "1")
    verdict = run.verdict
    assert run.code == UNSETTLED and verdict["speed"] is None, run
    assert verdict["correctness"]["passed"] and "--budget" in verdict["message"]


def test_who_cannot_be_constructed_waits_for_no_values(assay, relu, candidate, tmp_path):
    """Values and results of a large problem took a minute before a missing argument was told."""
    broken = candidate("broken", init="self.zero = nn.Linear(3)")
    paths = [broken, candidate("bad", "import nothing")]
    trace = tmp_path / "trace"
    run = assay.judge(
        relu, *paths, "--set", "ROWS=40000", "--set", "WIDTH=2048", ASSAY_TRACE=str(trace)
    )
    assert "open the oracle" not in spans(trace), "the problem was called"
    assert run.code == ENVIRONMENT, run  # the module
    verdict, lacking = json.loads(run.out)
    fits(verdict, "verdict")
    assert verdict["outcome"] == "build_failed" and "line 8" in verdict["message"], verdict
    assert verdict["problem"]["signature"] == [
        "input x float32[40000, 2048]", "output out float32[40000, 2048]"
    ]  # fmt: skip
    assert verdict["problem"]["dtype"] == "float32" and verdict["work"]["bytes"] > 6e8
    assert "the module nothing" in lacking["message"]


OUT_OF_BOUNDS = """
#include <assay/kernel.h>
ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<float, 2> out) {
  const int64_t count = x.size(0) * x.size(1);
  for (int64_t i = 0; i < count; ++i) out.data()[i] = x.data()[i] > 0 ? x.data()[i] : 0;
  for (int64_t i = count; i < count + 15; ++i) out.data()[i] = 1;
}
"""


def explained(assay, verdict):
    """Runs the program that `assay explain` writes."""
    run = assay("explain", verdict["id"], "-o", verdict["id"])
    assert run.code == 0, run
    command = run.out.strip().splitlines()[-1]
    return subprocess.run(
        command, shell=True, cwd=assay.home, capture_output=True, text=True, timeout=60
    )


def test_explain_shows_what_was_wrong(assay, relu, candidate, write):
    native = write("bounds.cpp", OUT_OF_BOUNDS)
    python = candidate("python", forward="x = x.clone(); x[1, 2] = 7")
    run = assay.judge(relu, native, python, "--set", "WIDTH=33", "--correctness-only")
    assert run.code == WRONG, run
    bounds, wrong = run.verdict
    process = explained(assay, bounds)
    assert process.returncode != 0 and "AddressSanitizer" in process.stderr, process
    process = explained(assay, wrong)
    assert process.returncode == 1 and "out[35]: got 7, expected" in process.stdout, process
    # Nothing is offered that is not kept.
    options = ("--set", "WIDTH=33", "--correctness-only")
    card = assay("judge", relu, native, *options, "--no-save")
    assert card.code == WRONG and "assay explain" not in card.out, card
