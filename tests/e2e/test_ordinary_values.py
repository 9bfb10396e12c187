"""Values that ordinary files have: masks that leave -inf and NaN, ties, NaN inputs, and calls whose
results depend on more than their inputs.
"""

import json

from conftest import USAGE, fits

HEAD = "import torch\nimport torch.nn as nn\n"

MASKED = """
B, N = 8, 64
class Model(nn.Module):
    def forward(self, scores, mask):
        masked = scores.masked_fill(~mask, float("-inf"))
        return masked, torch.softmax(masked, dim=-1)
def get_inputs():
    mask = torch.rand(B, N) > 0.3
    mask[3] = False
    return [torch.randn(B, N), mask]
def get_init_inputs():
    return []
"""

# Probabilities of float32 that come from few bits: ties on ordinary values.
ROUTER = """
B, N, E = 32, 16, 16
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(N, E, bias=False)
    def forward(self, x):
        return torch.softmax((self.gate(x) * 8).round(), -1).argmax(-1)
def get_inputs():
    return [torch.randn(B, N)]
def get_init_inputs():
    return []
"""

RELU = """
B, N = 8, 64
class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)
def get_inputs():
    return [torch.randn(B, N)]
def get_init_inputs():
    return []
"""


def model(forward, init="pass"):
    return (
        HEAD
        + f"class ModelNew(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        + f"        {init}\n    def forward(self, x):\n        "
        + "\n        ".join(forward.strip().splitlines())
        + "\n"
    )


def judged(assay, write, problem, candidates, *options):
    """The verdicts on candidates, by name."""
    problem = write("problem.py", HEAD + problem)
    paths = [write(name, text) for name, text in candidates.items()]
    run = assay.judge(problem, *paths, "--correctness-only", *options)
    assert run.out, run
    verdicts = run.verdict if len(paths) > 1 else [run.verdict]
    for verdict in verdicts:
        fits(verdict, "verdict")
    return dict(zip(candidates, verdicts))


def renamed(problem):
    return HEAD + problem.replace("class Model(", "class ModelNew(")


def test_outputs_that_hold_infinities_and_nan_by_design(assay, write):
    right = renamed(MASKED)
    wrong = {
        "finite.py": (right.replace('float("-inf")', "-1e30"), ()),
        "no_nan.py": (
            right.replace("dim=-1)", "dim=-1).nan_to_num()"),
            ("--tolerance", "allclose:1e-4"),
        ),
    }
    for name, (text, options) in wrong.items():
        verdicts = judged(assay, write, MASKED, {"right.py": right, name: text}, *options)
        assert verdicts["right.py"]["outcome"] == "correct", verdicts["right.py"]
        assert verdicts["right.py"]["correctness"]["draws"][5]["result"] == "passed"
        assert verdicts[name]["outcome"] == "wrong", verdicts[name]
        assert "are finite where NaN" in verdicts[name]["correctness"]["hint"], verdicts[name]


def test_a_reference_without_a_single_number_is_refused(assay, write):
    problem = write("problem.py", HEAD + RELU.replace("relu(x)", "log(-x.abs() - 1)"))
    candidate = write("candidate.py", renamed(RELU))
    run = assay("judge", problem, candidate, "--correctness-only", "--tolerance", "allclose:1e-2")
    assert run.code == USAGE and "every element of its outputs is NaN or infinite" in run.err, run
    assert "--tolerance" not in run.err, run


def test_indices_into_what_forward_computes_and_a_draw_left_out(assay, write):
    gate = "self.gate = nn.Linear(16, 16, bias=False)"
    scores = "p = torch.softmax((self.gate(x) * 8).round(), -1)\n"
    candidates = {
        "last.py": model(scores + "return 15 - p.flip(-1).argmax(-1)", gate),
        "second.py": model(scores + "return torch.topk(p, 2)[1][:, 1].contiguous()", gate),
    }
    verdicts = judged(assay, write, ROUTER, candidates, "--skip-draws", "ties,outlier")
    assert verdicts["last.py"]["outcome"] == "correct", verdicts["last.py"]
    assert verdicts["second.py"]["outcome"] == "wrong", verdicts["second.py"]
    assert "where the right one" in verdicts["second.py"]["correctness"]["hint"]
    draws = {draw["kind"]: draw for draw in verdicts["last.py"]["correctness"]["draws"]}
    assert draws["ties"]["result"] == draws["outlier"]["result"] == "dropped"
    assert draws["ties"]["reason"] == "such draws are left out of this problem"
    problem = str(write("problem.py", HEAD + ROUTER))
    run = assay.judge(problem, write("last.py", candidates["last.py"]), "--skip-draws", "tise")
    assert run.code == USAGE and "large-offset" in run.out + run.err, run


# Ties, also within windows that overlap; an exponent; an output that is a constant; all by key.
BY_KEY = """
import torch.nn.functional as F
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.p = nn.Parameter(torch.tensor(3.0))
    def forward(self, x):
        best, at = F.max_pool1d(x, 3, stride=2, return_indices=True)
        top, which = torch.topk(x, 4, dim=-1)
        return {"cubes": x ** self.p, "best": best, "at": at, "top": top, "which": which,
                "zero": x * 0 + 1 - 1}
def get_inputs():
    return [torch.randint(-2, 3, (2, 3, 17)).float()]
"""
# The last ones of equal values.
LAST = """
windows = x.unfold(-1, 3, 2)
k = 2 - windows.flip(-1).argmax(-1)
best = windows.gather(-1, k.unsqueeze(-1)).squeeze(-1)
at = k + 2 * torch.arange(8)
top, i = torch.sort(x.flip(-1), dim=-1, descending=True, stable=True)
top, which = top[..., :4].contiguous(), (16 - i[..., :4]).contiguous()
CHANGE
return {"zero": torch.zeros_like(x), "at": at, "best": best, "cubes": x ** self.p,
        "top": top, "which": which}
"""


def test_outputs_by_key_indices_in_another_valid_order_exponents_and_constants(assay, write):
    changes = {
        "right.py": "pass",
        "keys.py": 'return {"cubes": x ** self.p, "best": best, "at": at, "top": top, "none": x}',
        "window.py": "at = at % 3",
        "second.py": "at = 2 * torch.arange(8).expand(2, 3, 8)",
        "twice.py": "which = (x.unsqueeze(2) == top.unsqueeze(3)).to(torch.uint8).argmax(-1)",
        "range.py": "which = which + 17",
    }
    exponent = "self.p = nn.Parameter(torch.tensor(3.0))"
    candidates = {
        name: model(LAST.replace("CHANGE", change), exponent) for name, change in changes.items()
    }
    verdicts = judged(assay, write, BY_KEY, candidates)
    verdict = verdicts.pop("right.py")
    assert verdict["outcome"] == "correct", verdict
    note = verdict["correctness"]["note"]
    assert "weight p stays as constructed" in note, note
    assert "output out5 is 0 in all elements of all draws" in note, note
    assert all(verdict["outcome"] == "wrong" for verdict in verdicts.values()), verdicts
    hints = {name: verdict["correctness"]["hint"] for name, verdict in verdicts.items()}
    assert "lacks 'which', 'zero' and has besides 'none'; the reference's has" in hints["keys.py"]
    assert "of the 48 indices lie outside of their window" in hints["window.py"], hints
    assert ", where the right one, " in hints["second.py"], hints
    assert "stand twice along the axis" in hints["twice.py"], hints
    assert "24 of the 24 indices are out of range" in hints["range.py"], hints


NATIVE = """
#include <assay/kernel.h>
#include <cstdlib>
#include <stdexcept>
#include <vector>
ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<float, 2> y) {
  BODY
}
"""
SCRATCH = """
  static std::vector<float> sums(x.count());
  for (int64_t i = 0; i < x.count(); ++i) {
    sums[i] += x.data()[i] > 0 ? x.data()[i] : 0;
    y.data()[i] = sums[i];
  }
"""
UNSET = """
  float* pad = static_cast<float*>(std::malloc(4096));
  for (int64_t i = 0; i < x.count(); ++i)
    y.data()[i] = (x.data()[i] > 0 ? x.data()[i] : 0) + pad[i % 1000];
  std::free(pad);
"""


def test_special_values_and_calls_that_depend_on_more_than_their_inputs(assay, write):
    candidates = {
        "mask.py": model("return x * (x > 0)"),
        "random.py": model("return torch.relu(x) + 1e-3 * torch.rand(x.shape)"),
        "scratch.cpp": NATIVE.replace("BODY", SCRATCH),
        "unset.cpp": NATIVE.replace("BODY", UNSET),
        "throws.cpp": NATIVE.replace("BODY", 'throw std::runtime_error("no room for it");'),
    }
    verdicts = judged(assay, write, RELU, candidates)
    mask = verdicts["mask.py"]
    assert mask["outcome"] == "correct", mask
    assert "wrong on NaN or infinity" in mask["correctness"]["differs_on_special_values"]
    assert "differs" in [draw["result"] for draw in mask["correctness"]["draws"]]
    hints = {
        name: verdict["correctness"]["hint"]
        for name, verdict in verdicts.items()
        if verdict["outcome"] == "wrong"
    }
    assert sorted(hints) == ["random.py", "scratch.cpp", "unset.cpp"], verdicts
    assert hints["random.py"].startswith("differs from run to run"), hints
    assert "float16" not in hints["random.py"], hints
    assert "the first call was right, and is wrong when it is made again" in hints["scratch.cpp"]
    assert len(verdicts["unset.cpp"]["correctness"]["draws"]) == 18
    assert verdicts["unset.cpp"]["correctness"]["draws"][0]["result"] == "failed"
    throws = verdicts["throws.cpp"]
    assert throws["outcome"] == "crashed", throws
    assert "it threw std::runtime_error: no room for it" in throws["message"], throws
    assert "touched address" not in throws["message"], throws


def test_special_values_where_they_are_demanded(assay, write):
    mask = {"mask.py": model("return x * (x > 0)")}
    verdict = judged(assay, write, RELU, mask, "--special-values", "required")["mask.py"]
    assert verdict["outcome"] == "wrong", verdict
    assert verdict["correctness"]["differs_on_special_values"] is None


# Without its clean-up of NaN a loss was 3.6 times as fast.
def test_special_values_are_demanded_where_the_reference_asks_for_them(assay, write):
    clean = "torch.where(torch.isnan(x), torch.zeros_like(x), x)"
    problem = RELU.replace("torch.relu(x)", f"torch.relu({clean})")
    kernels = {
        "left_out.py": model("return torch.relu(x)"),
        "whole.py": model(f"return {clean}.clamp(min=0)"),
    }
    verdicts = judged(assay, write, problem, kernels)
    assert verdicts["left_out.py"]["outcome"] == "wrong", verdicts
    assert verdicts["whole.py"]["outcome"] == "correct", verdicts
    noted = judged(assay, write, problem, kernels, "--special-values", "noted")["left_out.py"]
    assert noted["outcome"] == "correct", noted


def test_a_dropout_that_forward_never_calls_is_not_blamed(assay, write):
    problem = HEAD + RELU.replace(
        "def forward(self, x):\n        return torch.relu(x)",
        "def __init__(self):\n        super().__init__()\n        self.drop = nn.Dropout(0.5)\n"
        "    def forward(self, x):\n        return torch.relu(x) + torch.rand(x.shape)",
    )
    run = assay("judge", write("problem.py", problem), write("candidate.py", renamed(RELU)))
    assert run.code == USAGE and "it draws random numbers" in run.err, run
    assert "drop" not in run.err, run


# The parts of x * x do not sum to it in float32, so its difference from x is rounding where x is 1.
IN_PARTS = """
square = x * x
return square * (2 / 7) + square * (4 / 7) + square * (1 / 7) - x * (1 + ERROR)
"""


def test_where_every_true_value_is_zero_terms_that_cancel_may_round(assay, write):
    """The gradient of a softmax was `wrong` where a drawn size was 2 by 2: by 8e-9, for 0. The seed
    is fixed: a draw of zeros and ones may be of zeros alone, where no factor is an error."""
    problem = RELU.replace("torch.relu(x)", "x * x - x")
    candidates = {
        name: model(IN_PARTS.replace("ERROR", error))
        for name, error in {"right.py": "0", "wrong.py": "2e-5"}.items()
    }
    verdicts = judged(assay, write, problem, candidates, "--seed", "3")
    assert verdicts["right.py"]["outcome"] == "correct", verdicts["right.py"]
    draws = verdicts["wrong.py"]["correctness"]["draws"]
    assert [draw["kind"] for draw in draws if draw["result"] == "failed"] == ["zero-one"], draws


def test_without_float64_random_signs_show_gross_faults(assay, write):
    """`return x` passed a rectifier in NumPy, whose inputs are all positive."""
    problem = RELU.replace("torch.relu(x)", "torch.from_numpy(x.numpy().astype('float32').clip(0))")
    candidates = {"relu.py": model("return torch.relu(x)"), "copy.py": model("return x.clone()")}
    options = ("--one-size",)
    found = judged(assay, write, problem.replace("randn", "rand"), candidates, *options)
    assert found["relu.py"]["outcome"] == "correct", found
    assert "random signs alone" in found["relu.py"]["correctness"]["note"]
    assert found["copy.py"]["outcome"] == "wrong", found
    draws = {draw["kind"]: draw["result"] for draw in found["copy.py"]["correctness"]["draws"]}
    assert draws["ordinary"] == "passed" and draws["huge-scale"] == "dropped", draws
    assert draws["signs"] == "failed", draws
