"""Results of Python are read where they lie, and nobody gains by a copy."""
import pytest

from conftest import CORRECT, RELU_REUSES, ROOT, SOFTMAX, UNSETTLED


@pytest.mark.thorough
def test_a_copy_that_is_left_out_gains_nothing(assay):
    """PyTorch's own softmax, which had taken the copy out of its host, was 1.26 times as fast as
    itself: its results go where the host copies to. Nobody's are copied now, but for those of a
    candidate that uses their memory again.
    """
    exploit = ROOT / "tests" / "exploits" / "gpu" / "corpus" / "30_patched_copy.py"
    run = assay.judge(SOFTMAX, exploit, "--size", "tiny", "-q")
    assert run.code in CORRECT and run.verdict["outcome"] != "faster", run
    record = run.verdict["speed"]["baselines"]["eager"]
    assert "memory of its results again" in record["note"], record


REUSES = """
import torch
class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.buffers_ = [None, None, None]
        self.calls = 0
    def forward(self, x):
        self.calls += 1
        place = self.calls % 3
        if self.buffers_[place] is None or self.buffers_[place].shape != x.shape:
            self.buffers_[place] = torch.empty_like(x)
        return torch.softmax(x, dim=-1, out=self.buffers_[place])
"""
# Results lie in memory of their own, but for the time until the next call, whose scratch it is.
WRITES_OVER_THE_LAST = """
import torch
class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.last = None
    def forward(self, x):
        if self.last is None or self.last.shape != x.shape:
            self.last = torch.empty_like(x)
        scratch = torch.mul(x, 1, out=self.last)
        self.last = torch.softmax(scratch, dim=-1)
        return self.last
"""
ODD_RESULTS = """
import torch
class Odd(torch.Tensor):
    pass
class ModelNew(torch.nn.Module):
    def forward(self, x):
        result = torch.softmax(x, dim=-1)
        self.calls = getattr(self, "calls", 0) + 1
        if self.calls % 4 == 0:
            return result.t().contiguous().t()
        if self.calls % 4 == 1:
            return result.as_subclass(Odd)
        if self.calls % 4 == 2:
            return torch._neg_view(-result)
        return [result]
"""


@pytest.mark.parametrize(
    "source",
    (
        pytest.param(REUSES, id="reuses", marks=pytest.mark.thorough),
        pytest.param(WRITES_OVER_THE_LAST, id="writes over the last", marks=pytest.mark.thorough),
        pytest.param(ODD_RESULTS, id="odd"),
    ),
)
def test_results_of_every_kind_are_read_where_they_lie(assay, write, source):
    run = assay.judge(SOFTMAX, write("odd.py", source), "--size", "tiny", "-q", "--budget", "10")
    assert run.code in CORRECT, run
    note = run.verdict["speed"]["baselines"]["eager"]["note"] or ""
    assert ("memory of its results again" in note) == (source != ODD_RESULTS), note


# Its own memory serves a native candidate's results, whatever becomes of its opponent's.
def test_an_opponent_alone_has_its_results_copied_and_the_verdict_says_so(assay, write):
    fused = ROOT / "kernels" / "softmax" / "fused.cpp"
    against = ["--against", write("reuses.py", REUSES)]
    run = assay.judge(SOFTMAX, fused, *against, "--size", "tiny", "-q", "--budget", "10")
    assert run.code in CORRECT, run
    result = run.verdict["speed"]["baselines"]["against"]
    assert result["copies"] == "opponent", result
    assert run.code == UNSETTLED or "copying them is in the opponent's time" in result["note"], run


RELU = """import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
def get_inputs():
    return [torch.randn(256, 1024)]
def get_init_inputs():
    return []
"""
NATIVE_RELU = """#include <assay/kernel.h>
ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<float, 2> out) {
  for (int64_t r = 0; r < x.size(0); ++r)
    for (int64_t c = 0; c < x.size(1); ++c) out(r, c) = x(r, c) < 0 ? 0 : x(r, c);
}
"""


@pytest.mark.thorough
def test_a_win_by_the_opponents_copies_alone_is_none(assay, write):
    """Both do the same, and the opponent's results are copied: twice as fast by the clock."""
    problem = write("relu.py", RELU)
    against = ["--against", write("again.py", RELU_REUSES)]
    run = assay.judge(problem, write("relu.cpp", NATIVE_RELU), *against, "-q", "--budget", "30")
    result = run.verdict["speed"]["baselines"]["against"]
    assert run.code == UNSETTLED and result["copies"] == "opponent", run
    assert result["speedup"] > 1.2, result
    assert "without that copy it would not be faster" in result["note"], result
