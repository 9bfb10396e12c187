"""A choice between two things that are the same but for rounding: on a draw of huge values honest
programs make it one way or the other, and whether the reference makes it the right way is luck.

Before, the candidate was `wrong` there wherever the reference was lucky: seen once, in a test run,
with an attention in plain float32 and one row of 258.
"""

import pytest

from conftest import CORRECT, ROOT, WRONG

PROBLEM = ROOT / "tests" / "problems" / "choices.py"

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
    # At both sizes, and a draw that leaves rows out has passed.
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
)
def test_nothing_else_is_left_out(assay, write, score, weights):
    # Under another seed there may be no row in which these differ from a right program.
    result = assay.judge(
        PROBLEM, write("wrong.cpp", kernel(score, weights)), "--correctness-only", "--seed", "3"
    )
    assert result.code == WRONG, result
    failed = [d for d in result.verdict["correctness"]["draws"] if d["result"] == "failed"]
    assert [draw["kind"] for draw in failed] == ["huge-scale"], result
