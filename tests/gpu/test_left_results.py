"""Results of hosts in Python stay where forward put them, in memory that the judge has lent, and
nobody pays for a copy, or gains by leaving it out (docs/protocol.md).
"""
import pytest

from conftest import ROOT, assert_right

# Two judges at a time had no room for such regions on a device of 80 GB.
pytestmark = pytest.mark.alone

# Results of each of the allocator's kinds, several of a call, and beside scratch of other sizes.
PROBLEMS = {
    "a number": ("512, 512", "x.square().mean()"),
    "small": ("64, 64", "torch.relu(x)"),
    "in segments": ("1024, 2048", "torch.softmax(x, dim=-1)"),
    "large": ("4096, 4096", "torch.softmax(x, dim=-1)"),
    "several": ("512, 700", "(2 * x, x.amax(dim=-1), x.argmax(dim=-1))"),
    "scratch": ("512, 512", "(x @ x.t() @ x).relu() + x"),
}
PROBLEM = """import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return {result}
def get_inputs():
    return [torch.randn({shape})]
def get_init_inputs():
    return []
"""
REUSES = """import torch
class ModelNew(torch.nn.Module):
    result = None
    def forward(self, x):
        if self.result is None or self.result.shape != x.shape:
            self.result = torch.empty_like(x)
        return torch.softmax(x, dim=-1, out=self.result)
"""


def copies(verdict):
    assert_right(verdict)
    return verdict["speed"]["baselines"]["eager"]["copies"]


@pytest.mark.parametrize("name", PROBLEMS)
def test_pytorch_beside_itself_copies_nothing(judge, tmp_path, name):
    shape, result = PROBLEMS[name]
    text = PROBLEM.format(shape=shape, result=result)
    problem = tmp_path / "problem.py"
    problem.write_text(text)
    candidate = text.replace("class Model(", "class ModelNew(")
    verdict = judge("same.py", candidate, str(problem), ["--budget", "8"], size=None)
    assert copies(verdict) == "nobody", verdict["speed"]
    assert verdict["outcome"] in ("tie", "unsettled"), verdict["message"]


def test_memory_that_is_used_again_is_copied(judge):
    verdict = judge("reuses.py", REUSES)
    assert copies(verdict) == "both", verdict["speed"]
    assert "memory of its results again" in verdict["speed"]["baselines"]["eager"]["note"]


def test_a_copy_that_is_left_out_gains_nothing(judge):
    """It was 1.43 to 1.55 times as fast as itself while both sides copied."""
    exploit = ROOT / "tests" / "exploits" / "gpu" / "corpus" / "30_patched_copy.py"
    options = ["--set", "ROWS=4096", "--set", "COLUMNS=4096", "--budget", "50"]
    verdict = judge(exploit.name, exploit.read_text(), "softmax", options, size=None)
    assert copies(verdict) == "both", verdict["speed"]
    assert verdict["outcome"] in ("slower", "tie", "unsettled"), verdict["message"]
