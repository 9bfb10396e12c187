"""Inputs as ordinary files have them: changed in place, views, forms other than KernelBench's."""
import re

import pytest

from conftest import CODE_OF, CORRECT, ROOT, USAGE, Assay, fits

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
NEW = HEAD + "class ModelNew(nn.Module):\n    def forward(self, {}):\n        {}\n"

CACHE = HEAD + """
class Model(nn.Module):
    def forward(self, cache, k, pos):
        cache[:, :, pos] = k
        return cache[:, :, pos].sum(-1)
def get_inputs():
    return [torch.randn(2, 3, 64, 8), torch.randn(2, 3, 8), 7]
"""
CACHE_NATIVE = """
#include <assay/kernel.h>
ASSAY_KERNEL(assay::Tensor<float, 4> cache, assay::Tensor<const float, 3> k, int64_t pos,
             assay::Tensor<float, 2> out) {
  for (int64_t b = 0; b < k.size(0); ++b)
    for (int64_t h = 0; h < k.size(1); ++h) {
      float sum = 0;
      for (int64_t d = 0; d < k.size(2); ++d) sum += WRITE k(b, h, d);
      out(b, h) = sum;
    }
}
"""

STEP = HEAD + """
class Model(nn.Module):
    def forward(self, p, g):
        p.sub_(RATE * g)
        RETURN
RATE = 0.1
def get_inputs():
    return [torch.randn(1000), torch.randn(1000)]
"""
STEP_NATIVE = """
#include <assay/kernel.h>
ASSAY_KERNEL(assay::Tensor<float, 1> p, assay::Tensor<const float, 1> g) {
  float* to = p.data();
  const float* from = g.data();
  for (int64_t i = 0, n = p.size(0); i < n; ++i) to[i] -= 0.1f * from[i];
}
"""

KERNELBOOK = HEAD + """
class Helper(nn.Module):
    def forward(self, x):
        return x
class SumAggregator(nn.Module):
    def __init__(self, scale, shift=0.5):
        super(SumAggregator, self).__init__()
        self.scale, self.shift, self.helper = scale, shift, Helper()
    def forward(self, neighbour):
        return self.helper(torch.sum(neighbour, dim=1) * self.scale + self.shift)
def get_inputs():
    return [torch.rand([4, 3, 2])]
def get_init_inputs():
    return [[], {'scale': 2.0}]
"""

VIEWS = HEAD + """
class Model(nn.Module):
    def forward(self, image, table, wide):
        return image * 2 + table[0, 0] + wide.sum()
def get_inputs():
    return [torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
            torch.randn(6, 8)[:, ::2].t(), torch.randn(1, 7).expand(9, 7)]
"""
VIEWS_NATIVE = """
#include <assay/kernel.h>
ASSAY_KERNEL(assay::Tensor<const float, 4> image, assay::Tensor<const float, 3> table,
             assay::Tensor<const float, 2> wide, assay::Tensor<float, 4> out) {
  float sum = table(0, 0, 0);
  for (int64_t i = 0; i < wide.count(); ++i) sum += wide.data()[i];
  for (int64_t n = 0; n < 2; ++n)
    for (int64_t c = 0; c < 3; ++c)
      for (int64_t h = 0; h < 4; ++h)
        for (int64_t w = 0; w < 5; ++w) out(n, c, h, w) = 2 * image(n, h, w, c) + sum;
}
"""
STRIDES = "(image.stride(), table.stride(), wide.stride())"


@pytest.fixture
def judge(judge_many, tmp_path):
    """judge(problem, {name: source}, options) gives the verdicts by name."""

    def run(problem, candidates, *options):
        path = tmp_path / "problem.py"
        path.write_text(problem)
        paths = [tmp_path / name for name in candidates]
        for one, source in zip(paths, candidates.values()):
            one.write_text(source)
        verdicts = judge_many(path, paths, options or ("--correctness-only",))
        for verdict in verdicts:
            fits(verdict, "verdict")
        return dict(zip(candidates, verdicts))

    return run


def outcomes(verdicts):
    return {name: verdict["outcome"] for name, verdict in verdicts.items()}


def test_a_cache_that_forward_updates_is_output(judge):
    never = "cache as it was: the reference's forward changes its input cache"
    verdicts = judge(
        CACHE,
        {
            "right.cpp": CACHE_NATIVE.replace("WRITE", "cache(b, h, pos, d) ="),
            "never.cpp": CACHE_NATIVE.replace("WRITE", ""),
            "const.cpp": CACHE_NATIVE.replace("WRITE", "").replace("<float, 4", "<const float, 4"),
            "elsewhere.cpp": CACHE_NATIVE.replace("WRITE", "cache(b, h, pos + 1, d) ="),
            "right.py": NEW.format("cache, k, pos", "cache[:, :, pos] = k; return k.sum(-1)"),
            "never.py": NEW.format("cache, k, pos", "return k.sum(-1)"),
        },
    )
    assert outcomes(verdicts) == {
        "right.cpp": "correct",
        "never.cpp": "wrong",
        "const.cpp": "build_failed",
        "elsewhere.cpp": "wrong",
        "right.py": "correct",
        "never.py": "wrong",
    }
    assert never in verdicts["never.cpp"]["message"]
    assert never in verdicts["never.py"]["message"]
    assert "input cache, which forward changes in place" in verdicts["const.cpp"]["message"]
    mismatch = verdicts["elsewhere.cpp"]["correctness"]["first_mismatch"]
    assert mismatch["output"] == "cache_after" and mismatch["index"][2] in (7, 8)
    signature = verdicts["right.py"]["problem"]["signature"]
    assert signature[0] == "input cache float32[2, 3, 64, 8], which forward changes"
    assert signature[-1] == "output cache_after float32[2, 3, 64, 8]"


def test_a_step_in_place_is_timed_and_every_call_checked(judge):
    verdicts = judge(
        STEP.replace("RETURN", "return p"),
        {
            "right.cpp": STEP_NATIVE,
            "right.py": NEW.format("p, g", "return p.sub_(g, alpha=0.1)"),
            "pure.py": NEW.format("p, g", "return p - 0.1 * g"),
            # Right in gate 1, whose calls are few; a block has more.
            "late.py": NEW.format(
                "p, g", "self.n = getattr(self, 'n', 0) + 1; return p.sub_(STEP)"
            ).replace("STEP", "0.1 * g if self.n < 30 else torch.zeros_like(g)"),
        },
        "--budget", "1",
    )  # fmt: skip
    correct = [outcome for outcome, code in CODE_OF.items() if code in CORRECT]
    assert verdicts["right.cpp"]["outcome"] in correct
    assert verdicts["right.py"]["outcome"] in correct
    assert verdicts["right.py"]["speed"]["baselines"]["eager"]["copies"] == "nobody"
    assert verdicts["pure.py"]["outcome"] == "wrong"
    assert "is not the input p, which the reference" in verdicts["pure.py"]["message"]
    assert verdicts["late.py"]["outcome"] == "wrong"


def test_a_forward_that_returns_nothing_but_changes_inputs_is_a_problem(judge):
    source = STEP.replace("RETURN", "return None")
    verdicts = judge(
        source,
        {"right.cpp": STEP_NATIVE, "pure.py": NEW.format("p, g", "return p - 0.1 * g")},
    )
    assert outcomes(verdicts) == {"right.cpp": "correct", "pure.py": "wrong"}
    assert "it leaves p as it was" in verdicts["pure.py"]["message"]
    # A step that no bound sees proves nothing of any candidate.
    native = STEP_NATIVE.replace("0.1f", "1e-9f")
    small = judge(source.replace("RATE = 0.1", "RATE = 1e-9"), {"right.cpp": native})
    assert small["right.cpp"]["outcome"] == "unsettled"
    assert "less than gate 1 sees" in small["right.cpp"]["message"]


def test_files_of_kernelbooks_form_are_read(judge):
    verdicts = judge(
        KERNELBOOK,
        {
            "copy.py": KERNELBOOK,
            "named.py": KERNELBOOK.replace("SumAggregator", "SumAggregatorNew"),
            "renamed.py": KERNELBOOK.replace("class SumAggregator", "class ModelNew"),
            "wrong.py": KERNELBOOK.replace("shift=0.5", "shift=0.25"),
        },
    )
    assert [verdict["outcome"] for verdict in verdicts.values()] == 3 * ["correct"] + ["wrong"]
    assert verdicts["copy.py"]["problem"]["signature"][0] == "input neighbour float32[4, 3, 2]"


def test_the_gradient_of_the_documentation_is_judged(judge):
    text = (ROOT / "docs" / "problems.md").read_text()
    source = HEAD + re.search(r"### Gradients.*?```python\n(.*?)```", text, re.S).group(1)
    gradient = "return x.t() @ (x @ w - y) * ({} / y.numel())"
    verdicts = judge(
        source,
        {
            "right.py": NEW.format("w, x, y", gradient.format(2)),
            "half.py": NEW.format("w, x, y", gradient.format(1)),
        },
    )
    assert outcomes(verdicts) == {"right.py": "correct", "half.py": "wrong"}


def test_a_file_of_functions_is_told_how_to_be_wrapped(tmp_path):
    problem, candidate = tmp_path / "functions.py", tmp_path / "candidate.py"
    problem.write_text("def swish(x, beta=1.0):\n    return x * (beta * x).sigmoid()\n")
    candidate.write_text(NEW.format("x", "return x"))
    run = Assay(tmp_path).judge(problem, candidate, "--correctness-only")
    assert run.code == USAGE, run
    assert "`def forward(self, x): return swish(x)`" in run.err
    assert len(run.err.strip().splitlines()) == 1, run.err


def test_views_reach_python_as_they_are_and_native_candidates_as_memory(judge):
    own = "return image * 2 + table[0, 0] + wide.sum()"
    strides = "((60, 1, 15, 3), (2, 8), (7, 1))"
    verdicts = judge(
        VIEWS,
        {
            "memory.cpp": VIEWS_NATIVE,
            "strides.py": NEW.format(
                "image, table, wide", f"{own} + float({STRIDES} != {strides})"
            ),
        },
    )
    assert outcomes(verdicts) == {"memory.cpp": "correct", "strides.py": "correct"}
    for verdict in verdicts.values():
        note = verdict["correctness"]["note"]
        assert "input image is [2, 3, 4, 5] with strides [60, 1, 15, 3]" in note
        assert "native candidates get its memory, [2, 4, 5, 3]" in note
        assert "native candidates get its memory, [6, 4, 2]" in note
        assert "input wide is [9, 7] with strides [0, 1]: both sides get it contiguous" in note
