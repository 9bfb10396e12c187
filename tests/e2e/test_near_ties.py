"""A choice between two things that are the same but for rounding: on a draw of huge values honest
programs make it one way or the other, and whether the reference makes it the right way is luck.

Before, the candidate was `wrong` there wherever the reference was lucky: seen once, in a test run,
with an attention in plain float32 and one row of 258.
"""

import os
import signal
import time

import pytest

from conftest import CORRECT, INTERRUPTED, ROOT, WRONG, spans

PROBLEMS = ROOT / "tests" / "problems"
PROBLEM = PROBLEMS / "choices.py"

# The sums in float32, one number after the other. SCORE and WEIGHTS are where a program may differ.
KERNEL = """
#include <assay/kernel.h>
#include <algorithm>
#include <cmath>
ASSAY_KERNEL(assay::Tensor<const float, 3> keys, assay::Tensor<const float, 3> values,
             assay::Tensor<float, 2> out) {
  const int64_t features = keys.size(2), width = values.size(2);
  for (int64_t row = 0; row < keys.size(0); ++row) {
    float score[2] = {0, 0};
    for (int64_t k = 0; k < 2; ++k)
      for (int64_t i = 0; i < features; ++i)
        score[k] += keys.data()[(row * 2 + k) * features + i] / 1024;
    SCORE;
    const float largest = std::max(score[0], score[1]);
    float weight[2] = {std::exp(score[0] - largest), std::exp(score[1] - largest)};
    const float sum = weight[0] + weight[1];
    WEIGHTS;
    for (int64_t i = 0; i < width; ++i)
      out.data()[row * width + i] = (weight[0] * values.data()[row * 2 * width + i] +
                                     weight[1] * values.data()[(row * 2 + 1) * width + i]) / sum;
  }
}
"""


# Right on ordinary values, as their mean is small.
VARIANCE = """
#include <assay/kernel.h>
#include <cstring>
static float ToBFloat16(float value) {
  unsigned bits;
  std::memcpy(&bits, &value, 4);
  bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
  std::memcpy(&value, &bits, 4);
  return value;
}
ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<float, 1> out) {
  const int64_t columns = x.size(1);
  for (int64_t row = 0; row < x.size(0); ++row) {
    const float* values = x.data() + row * columns;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < columns; ++i) sum += values[i];
    const double mean = MEAN;
    for (int64_t i = 0; i < columns; ++i) squares += (values[i] - mean) * (values[i] - mean);
    out.data()[row] = squares / columns;
  }
}
"""
STEPS = """
#include <assay/kernel.h>
#include <cmath>
ASSAY_KERNEL(assay::Tensor<const float, 1> x, assay::Tensor<float, 1> out) {
  for (int64_t i = 0; i < x.size(0); ++i) {
    const float value = x.data()[i];
    out.data()[i] = SKIPS ? value : std::nearbyint(value * 8) / 8;
  }
}
"""


SUITE_OF_HUGE_VALUES = """
[[problem]]
name = "choices"
file = "choices.py"
skip_draws = ["large-offset", "wide-range", "tiny-scale", "signed-zeros", "ties", "small-integers",
              "zero-one", "outlier", "special-values"]
"""


def kernel(score="", weights=""):
    return KERNEL.replace("SCORE", score).replace("WEIGHTS", weights)


def left_out(verdict):
    return [
        draw for draw in verdict["correctness"]["draws"] if "left out" in (draw["reason"] or "")
    ]


def test_an_honest_program_may_choose_otherwise_where_rounding_decides(assay, write):
    result = assay.judge(PROBLEM, write("honest.cpp", kernel()), "--correctness-only")
    assert result.code in CORRECT, result
    draws = left_out(result.verdict)
    # At both sizes, and a draw that leaves elements out has passed.
    assert {"huge-scale"} <= {draw["kind"] for draw in draws}, result
    assert {bool(draw.get("set")) for draw in draws} == {False, True}, result
    assert all(draw["result"] == "passed" for draw in draws)
    note = result.verdict["correctness"]["note"]
    assert "left out" in note and "huge-scale" in note, note


def test_what_was_left_out_is_left_out_of_timed_blocks_too(assay, write):
    result = assay.judge(PROBLEM, write("honest.cpp", kernel()), "--budget", "4")
    assert result.verdict["outcome"] not in ("wrong", "crashed"), result
    assert result.verdict["speed"] is not None


@pytest.mark.parametrize(
    "score, weights",
    [
        # Right but for the largest scores, in a few rows of huge values: nothing moves there.
        ("for (float& s : score) s = s > 1.2e4f ? -s : s", ""),
        # Wrong by more than the two choices differ.
        ("", "if (score[0] > 1e3f && std::fabs(score[0] - score[1]) < 1) weight[0] = 9"),
        # No number where there is one.
        ("", "if (score[0] > 1e3f && std::fabs(score[0] - score[1]) < 1) weight[0] = NAN"),
    ],
    ids=["flipped", "too-far", "nan"],
)
def test_nothing_else_is_left_out(assay, write, score, weights):
    # Under another seed there may be no row in which these differ from a right program.
    result = assay.judge(
        PROBLEM, write("wrong.cpp", kernel(score, weights)), "--correctness-only", "--seed", "3"
    )
    assert result.code == WRONG, result
    failed = [d for d in result.verdict["correctness"]["draws"] if d["result"] == "failed"]
    assert [draw["kind"] for draw in failed] == ["huge-scale"], result


def test_an_opponent_may_choose_otherwise_too(assay, write):
    """Warm-up blocks check it as well: the call ended with an error about the baseline."""
    sums_in_double = kernel().replace("float score[2]", "double score[2]").replace(
        "const float largest", "const double largest"
    )
    # Every block's unusual call is one of huge values.
    write("suite.toml", SUITE_OF_HUGE_VALUES)
    problem = write("choices.py", PROBLEM.read_text())
    kernels = write("right.cpp", sums_in_double), "--against", write("honest.cpp", kernel())
    result = assay.judge(problem, *kernels, "--budget", "6")
    assert result.code in CORRECT, result


@pytest.mark.parametrize(
    "name, source, others",
    [
        # The condition is bad all over, and each row is one element of a single vector.
        ("variance", VARIANCE, ("MEAN", "sum / columns", "ToBFloat16(sum / columns)")),
        # Some values do step when they are nudged, and those that do not are wrong.
        ("steps", STEPS, ("SKIPS", "false", "std::fabs(value) > 6")),
    ],
    ids=["variance", "steps"],
)
def test_what_moves_a_little_elsewhere_excuses_nothing(assay, write, name, source, others):
    word, right, wrong = others
    problem = PROBLEMS / f"{name}.py"
    result = assay.judge(problem, write("a.cpp", source.replace(word, right)), "--correctness-only")
    assert result.code in CORRECT and not left_out(result.verdict), result
    result = assay.judge(problem, write("b.cpp", source.replace(word, wrong)), "--correctness-only")
    assert result.code == WRONG, result
    failed = [d for d in result.verdict["correctness"]["draws"] if d["result"] == "failed"]
    assert [draw["kind"] for draw in failed] == ["large-offset"], result


def test_ctrl_c_leaves_no_accusation(assay, write, tmp_path):
    """A terminal's Ctrl-C ended the second reference, too, and an honest program was `wrong`."""
    trace = tmp_path / "trace.json"
    process = assay.start(
        *("judge", PROBLEM, write("honest.cpp", kernel()), "--json", "--correctness-only"),
        ASSAY_TRACE=str(trace),
    )
    # The call on huge values is the seventh; what follows is the start of that reference.
    while process.poll() is None and not (trace.exists() and spans(trace).count("run a block") > 6):
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == INTERRUPTED and not out, (out, err)
    assert "ask what rounding moves" in spans(trace)
