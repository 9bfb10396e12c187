"""`--sustained`: what calls take in a run without pauses, after the decision."""
import json
import signal
import statistics
import subprocess

import pytest

from conftest import ASSAY, CORRECT, INTERRUPTED, SOFTMAX, SOFTMAX_BODY, WRONG, fits

SIZE = ("--set", "ROWS=64", "--set", "COLUMNS=256")
KERNEL = """
#include <assay/kernel.h>
#include <cmath>
static long calls;
ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<float, 2> y) {
  RIGHT
  AT_THE_END
}
""".replace("RIGHT", SOFTMAX_BODY)


@pytest.mark.alone
def test_both_sides_run_without_pauses_after_the_decision(assay, write):
    kernel = write("kernel.cpp", KERNEL.replace("AT_THE_END", ""))
    run = assay("judge", SOFTMAX, kernel, *SIZE, "--sustained", "1", "--json", "-q")
    assert run.code in CORRECT, run
    fits(run.verdict, "verdict")
    record = run.verdict["sustained"]
    assert record["baseline"] == "eager" and record["seconds"] == 1
    short = run.verdict["speed"]["baselines"]["eager"]
    for side, short_ns in (("reference", "time_ns"), ("candidate", "candidate_time_ns")):
        found = record[side]
        blocks, calls = found["block_ns"], found["calls_per_block"]
        later = blocks[len(blocks) // 2 :]
        assert abs(found["time_ns"] - statistics.median(later) / calls) < 0.01
        # Of the same kind: a busy machine may take several times as long.
        assert short[short_ns] / 10 < found["time_ns"] < short[short_ns] * 10
        assert 0.2 < found["running_share"] <= 1
        assert 0.2e9 < sum(blocks) < 5e9
        assert calls > short["calls_per_block"], "its blocks are long ones"


def test_without_the_option_nothing_is_run(assay, write):
    kernel = write("kernel.cpp", KERNEL.replace("AT_THE_END", ""))
    run = assay("judge", SOFTMAX, kernel, *SIZE, "--json", "-q")
    assert run.code in CORRECT, run
    assert run.verdict["sustained"] is None


@pytest.mark.thorough
def test_what_goes_wrong_in_a_long_run_alone_is_wrong(assay, write):
    """A kernel whose calls wear something out is right in every short block."""
    worn = "if (++calls > 20000) y[5] = 0;"
    kernel = write("worn.cpp", KERNEL.replace("AT_THE_END", worn.replace("y[5]", "y.data()[5]")))
    options = (*SIZE, "--budget", "5", "--json", "-q")
    assert assay("judge", SOFTMAX, kernel, *options).code in CORRECT
    run = assay("judge", SOFTMAX, kernel, *options, "--sustained", "4")
    assert run.code == WRONG, run
    assert run.verdict["outcome"] == "wrong" and run.verdict["sustained"] is None
    assert "timed call" in run.verdict["message"]


# Each result is good until the next call, which works in it.
WRITES_OVER_THE_LAST = """
import torch
class ModelNew(torch.nn.Module):
    last = None
    def forward(self, x):
        if self.last is None or self.last.shape != x.shape:
            self.last = torch.empty_like(x)
        self.last = torch.softmax(torch.mul(x, 1, out=self.last), dim=-1)
        return self.last
"""


@pytest.mark.thorough
def test_results_that_later_calls_write_over_are_no_fault_of_a_long_run(assay, write):
    """Where blocks that count have one call, the long run is the first that shows it: it said
    `wrong`.
    """
    source = write("over.py", WRITES_OVER_THE_LAST)
    options = ("--size", "small", "--budget", "6", "--sustained", "1", "--json", "-q")
    run = assay("judge", SOFTMAX, source, *options)
    assert run.code in CORRECT, run
    assert run.verdict["sustained"]["candidate"]["calls_per_block"] > 1
    # What is said of copies is of the pairs.
    eager = run.verdict["speed"]["baselines"]["eager"]
    assert eager["copies"] == ("nobody" if eager["calls_per_block"] == 1 else "both")


def test_ctrl_c_leaves_what_was_decided(assay, write):
    kernel = write("kernel.cpp", KERNEL.replace("AT_THE_END", ""))
    process = subprocess.Popen(
        [str(ASSAY), "judge", SOFTMAX, kernel, *SIZE, "--sustained", "300", "--jsonl", "-q"],
        stdout=subprocess.PIPE,
        text=True,
        env=assay.environment,
    )
    events = []
    for line in process.stdout:
        events.append(json.loads(line))
        if events[-1].get("stage", "").startswith("sustained speed") and len(events) > 1:
            process.send_signal(signal.SIGINT)
            break
    rest, _ = process.communicate(timeout=60)
    verdicts = [e["verdict"] for e in map(json.loads, rest.splitlines()) if "verdict" in e]
    assert process.returncode == INTERRUPTED
    assert len(verdicts) == 1 and verdicts[0]["sustained"] is None
    assert verdicts[0]["speed"]["baselines"]["eager"]["pairs"] >= 3


def test_it_goes_with_gate_2_alone(assay, write):
    kernel = write("kernel.cpp", KERNEL.replace("AT_THE_END", ""))
    run = assay("judge", SOFTMAX, kernel, "--sustained", "1", "--correctness-only", "-q")
    assert run.code == 2 and "--sustained" in run.err
    assert assay("judge", SOFTMAX, kernel, "--sustained", "0.1", "-q").code == 2
