"""Ordinary files that a single size, a single thread or a small limit judged wrongly; and words."""
import pytest

from conftest import DIED, RELU_REUSES, USAGE, fits

ROW_SUM = """import torch
N = 2000000
class Model(torch.nn.Module):
    def forward(self, x):
        return x.abs().sum().reshape(1)
def get_inputs():
    return [torch.randn(N)]
def get_init_inputs():
    return []
"""
# Milliseconds of work, so that threads meet on a busy machine, too.
SUM = """//! flags -fopenmp
#include <assay/kernel.h>
#include <cmath>
ASSAY_KERNEL(assay::Tensor<const float, 1> x, assay::Tensor<float, 1> out) {
  double total = 0;
#pragma omp parallel for%s
  for (int64_t i = 0; i < x.size(0); ++i) {
    volatile double& sum = total;
    sum = sum + std::fabs(x(i));
  }
  out(0) = static_cast<float>(total);
}
"""


def test_a_race_between_threads_is_wrong_though_it_is_timed_with_one(judge_many, write):
    problem = write("row_sum.py", ROW_SUM)
    race, right = write("race.cpp", SUM % ""), write("right.cpp", SUM % " reduction(+ : total)")
    found = judge_many(problem, [race, right], ["--correctness-only", "--threads", "1"])
    assert [verdict["outcome"] for verdict in found] == ["wrong", "correct"], found


GEMM = """import torch
M = 32
K = 64
N = 32
class Model(torch.nn.Module):
    def forward(self, a, b):
        return a @ b
def get_inputs():
    return [torch.randn(M, K), torch.randn(K, N)]
def get_init_inputs():
    return []
"""
# Two buffers; each tile of K adds into the other one.
TILED = """#include <assay/kernel.h>
ASSAY_KERNEL(assay::Tensor<const float, 2> a, assay::Tensor<const float, 2> b,
             assay::Tensor<float, 2> out) {
  const int64_t tile = 16, inner = a.size(1), tiles = (inner + tile - 1) / tile;
  for (int64_t r = 0; r < out.size(0); ++r)
    for (int64_t c = 0; c < out.size(1); ++c) {
      float sum[2] = {0, 0};
      for (int64_t t = 0; t < tiles; ++t) {
        float next = sum[t %% 2];
        for (int64_t k = t * tile; k < inner && k < (t + 1) * tile; ++k) next += a(r, k) * b(k, c);
        sum[1 - t %% 2] = next;
      }
      out(r, c) = sum[%s];
    }
}
"""
# Groups of four rows, the last of which moves back to be whole: fewer rows are in none.
GROUPS = """#include <assay/kernel.h>
#include <algorithm>
ASSAY_KERNEL(assay::Tensor<const float, 2> a, assay::Tensor<const float, 2> b,
             assay::Tensor<float, 2> out) {
  const int64_t rows = out.size(0);
  for (int64_t first = 0; rows >= 4 && first < rows; first += 4)
    for (int64_t r = std::min(first, rows - 4); r < std::min(first, rows - 4) + 4; ++r)
      for (int64_t c = 0; c < out.size(1); ++c) {
        float sum = 0;
        for (int64_t k = 0; k < a.size(1); ++k) sum += a(r, k) * b(k, c);
        out(r, c) = sum;
      }
}
"""


def test_ranges_of_ones_own_file_find_what_one_size_hides(judge_many, assay, write):
    problem = write("gemm.py", GEMM)
    odd, right = write("odd.cpp", TILED % "0"), write("tiled.cpp", TILED % "tiles % 2")
    groups = write("groups.cpp", GROUPS)
    one = judge_many(problem, [odd, groups, right], ["--correctness-only"])
    assert {verdict["outcome"] for verdict in one} == {"correct"}, one
    assert not any(draw.get("set") for draw in one[0]["correctness"]["draws"])
    # Up to 16 columns of K are an odd number of tiles, fewer than four rows are no group.
    short = ["--ragged", "K=1:16", "--ragged", "M=1:3", "--ragged", "N=1:67"]
    found = judge_many(problem, [odd, groups, right], ["--correctness-only", *short])
    assert [verdict["outcome"] for verdict in found] == ["wrong", "wrong", "correct"], found
    assert found[0]["message"].startswith("wrong: right at the size that was asked for, but at K ")
    sizes = {str(draw["set"]) for draw in found[2]["correctness"]["draws"] if draw.get("set")}
    assert 2 <= len(sizes) <= 3, sizes
    card = assay("judge", problem, right, "--correctness-only", "-q", *short, "--no-save")
    assert "right at this one and at K=" in card.out, card
    alone = assay("judge", problem, right, "--correctness-only", "-q", "--no-save")
    assert "right at this size alone" in alone.out, alone


@pytest.mark.parametrize(
    ("ragged", "said"),
    (
        (["--ragged", "Q=1:4"], "it has M, K, N"),
        (["--ragged", "K=0:4"], "such as N=1:67"),
        (["--ragged", "K=1:4", "--one-size"], "excludes"),
    ),
)
def test_ranges_that_are_none_get_one_error(assay, write, ragged, said):
    run = assay("judge", write("gemm.py", GEMM), write("a.cpp", TILED % "0"), *ragged)
    assert run.code == USAGE and said in run.err, run


LARGE = """import torch
N = 8000000
class Model(torch.nn.Module):
    def forward(self, x):
        return x[:2].clone()
def get_inputs():
    return [torch.full((N,), 1.0).uniform_()]
def get_init_inputs():
    return []
"""
FIRST_TWO = """#include <assay/kernel.h>
ASSAY_KERNEL(assay::Tensor<const float, 1> x, assay::Tensor<float, 1> out) {
  out(0) = x(0);
  out(1) = x(1);
}
"""
HOG = """#include <assay/kernel.h>
#include <cstring>
#include <vector>
ASSAY_KERNEL(assay::Tensor<const float, 1> x, assay::Tensor<float, 1> out) {
  static std::vector<char> hog;
  for (int i = 0; i < 20; ++i) hog.resize(hog.size() + (64 << 20), 1);
  out(0) = x(0);
  out(1) = x(1) + hog[5] - 1;
}
"""


def test_slots_are_no_memory_of_the_candidates(judge_many, write):
    """Two slots of 32 MB, of a candidate that may take 32."""
    problem, limit = write("large.py", LARGE), ["--correctness-only", "--memory", "32M"]
    small, hog = judge_many(problem, [write("a.cpp", FIRST_TWO), write("hog.cpp", HOG)], limit)
    assert small["outcome"] == "correct", small["message"]
    assert hog["outcome"] in ("out_of_memory", "crashed"), hog["message"]
    if hog["outcome"] == "out_of_memory":
        assert "--memory 32M" in hog["message"] and "--memory 64M" in hog["message"], hog


RELU = """import torch
N = 10
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
def get_inputs():
    return [torch.randn(N)]
def get_init_inputs():
    return []
"""
NATIVE_RELU = """#include <assay/kernel.h>
ASSAY_KERNEL(assay::Tensor<const float, 1> x, assay::Tensor<float, 1> out) {
  for (int64_t i = 0; i < x.size(0)%s; ++i) out.data()[i] = x.data()[i] < 0 ? 0 : x.data()[i];
}
"""
FAR = {
    f"far_{element}": f"x.data()[i]; out.data()[{element}] = 1;"
    for element in (1105, 5000, 1 << 20)
}
FAR["into_input"] = "x.data()[i]; const_cast<float*>(x.data())[0] = 1;"
IN_PLACE = """import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x.clamp_(min=0)
"""


def test_a_correct_candidate_is_correct_and_faults_are_named_as_they_are(assay, write):
    astray = write("astray.cpp", NATIVE_RELU % " + 15")
    files = [write("reuses.py", RELU_REUSES), astray, write("empty.py", "\n")]
    # Elements that are written besides: far past the end, in memory of other calls, in the input.
    for name, also in FAR.items():
        files.append(write(f"{name}.cpp", NATIVE_RELU.replace("x.data()[i];", also) % ""))
    files.append(write("in_place.py", IN_PLACE))
    run = assay("judge", write("relu.py", RELU), *files, "--correctness-only", "--json")
    right, stray, empty, *far, into_input, in_place = run.verdict
    assert right["outcome"] == "correct", right["message"]
    assert "60 bytes past the end of output" in stray["message"], stray["message"]
    assert "empty.py is empty" in empty["message"], empty["message"]
    for verdict in far:
        assert verdict["outcome"] in ("wrong", "crashed"), verdict["message"]
        assert "out of bounds: " in verdict["message"], verdict["message"]
        assert " bytes past the end of output out" in verdict["message"], verdict["message"]
    for verdict in (into_input, in_place):
        assert verdict["outcome"] == "crashed", verdict["message"]
        assert verdict["message"].startswith("it wrote to its input x, which is read-only"), verdict
    assert run.code == DIED, run


def test_a_win_by_the_overhead_of_calls_and_shared_memory_are_noted(assay, write):
    problem = write("relu.py", RELU)
    files = [write("relu.cpp", NATIVE_RELU % ""), write("reuses.py", RELU_REUSES)]
    run = assay("judge", problem, *files, "--json", "--budget", "1")
    native, reuses = run.verdict
    for verdict in (native, reuses):
        fits(verdict, "verdict")
        assert verdict["correctness"]["passed"], verdict["message"]
    results = [verdict["speed"]["baselines"]["eager"] for verdict in (native, reuses)]
    assert "call overhead decides here" in results[0]["note"], results[0]
    # Its opponent pays for copies as it does.
    assert results[1]["copies"] == "both", results[1]
    for result in results:
        assert (result["decision"] == "unsettled") == (result["why_unsettled"] is not None), result
        why = result["why_unsettled"]
        # Before the first look at the pairs nothing else can end it, on a busy machine either.
        if why and result["pairs"] < 3:
            assert why["cause"] == "budget", result
        if why and why["cause"] == "budget":
            assert why["budget_s"] > 1, result
    for verdict, result in zip((native, reuses), results):
        if result["why_unsettled"] and result["pairs"] < 3:
            assert "the budget ended after" in verdict["message"], verdict["message"]
            assert "--budget " in verdict["message"], verdict["message"]


# The number of groups stands in no shape. Of layers, each has a weight: other numbers of them make
# other lists of arguments.
GROUPED = """import torch
GROUPS = 4
scale = -2.5
LAYERS = 2
class Model(torch.nn.Module):
    def __init__(self, groups):
        super().__init__()
        self.groups = groups
        shapes = [torch.nn.Parameter(torch.ones(24)) for _ in range(LAYERS)]
        self.weights = torch.nn.ParameterList(shapes)
    def forward(self, x):
        for weight in self.weights:
            x = x * weight
        parts = x.view(x.shape[0], self.groups, -1)
        return (parts - parts.mean(-1, keepdim=True)).view_as(x) * scale
def get_init_inputs():
    return [GROUPS]
def get_inputs():
    return [torch.randn(5, 24)]
"""
GROUPED_KERNEL = """#include <assay/kernel.h>
ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<const float, 1> a,
             assay::Tensor<const float, 1> b, assay::Tensor<float, 2> y) {
  const int64_t width = x.size(1) / COUNT;
  for (int64_t i = 0; i < x.size(0); ++i)
    for (int64_t begin = 0; begin < x.size(1); begin += width) {
      double sum = 0;
      for (int64_t j = begin; j < begin + width; ++j) sum += double(x(i, j)) * a(j) * b(j);
      for (int64_t j = begin; j < begin + width; ++j)
        y(i, j) = float((double(x(i, j)) * a(j) * b(j) - sum / width) * ASSAY_SCALE);
    }
}
"""


def test_constants_are_macros_and_other_lists_of_arguments_are_not_asked_for(judge_many, write):
    problem = write("grouped.py", GROUPED)
    kernels = {"macro.cpp": "ASSAY_GROUPS", "fixed.cpp": "4", "mistyped.cpp": "ASSAY_GRUOPS"}
    paths = [write(name, GROUPED_KERNEL.replace("COUNT", by)) for name, by in kernels.items()]
    quick = ("--correctness-only", "--seed", "5")
    verdicts = judge_many(problem, paths, (*quick, "--ragged", "GROUPS=1:3"))
    outcomes = [verdict["outcome"] for verdict in verdicts]
    assert outcomes == ["correct", "wrong", "build_failed"], verdicts
    assert "-DASSAY_GROUPS=4 -DASSAY_SCALE=(-2.5)" in verdicts[0]["candidate"]["flags"], verdicts
    assert "right at the size that was asked for" in verdicts[1]["message"], verdicts[1]
    assert "'ASSAY_GRUOPS' was not declared" in verdicts[2]["message"], verdicts[2]
    (verdict,) = judge_many(problem, paths[:1], (*quick, "--ragged", "LAYERS=3:5"))
    assert verdict["outcome"] == "correct", verdict
    assert "asks for other arguments" in verdict["correctness"]["note"], verdict
