"""Weights of honest candidates: other names, another order, tensors more or less than the
reference has, and weights that a candidate prepares once.
"""
import pytest

from conftest import ROOT

LAYERS = """
import torch, torch.nn as nn
class Model(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.first = nn.Linear(width, hidden)
        self.second = nn.Linear(hidden, hidden)
        self.third = nn.Linear(hidden, hidden)
        self.register_buffer("steps", torch.arange(3))
    def forward(self, x):
        return self.third(torch.relu(self.second(torch.relu(self.first(x)))))
def get_inputs():
    return [torch.randn(4, 12)]
def get_init_inputs():
    return [12, 8]
"""
CANDIDATE = """
import torch, torch.nn as nn
class ModelNew(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        %s
    def forward(self, x):
        return %s
"""
FIRST, SECOND, THIRD = (
    "self.first = nn.Linear(width, hidden)",
    "self.second = nn.Linear(hidden, hidden)",
    "self.third = nn.Linear(hidden, hidden)",
)
FORWARD = "self.third(torch.relu(self.second(torch.relu(self.first(x)))))"
REST = "self.third(torch.relu(self.second(torch.relu(%s))))"
# Name: lines of the constructor, and what forward returns.
CANDIDATES = {
    # A buffer less, a buffer and a scalar parameter more, and the order of two layers changed.
    "by_name": (
        [
            FIRST,
            THIRD,
            "self.register_buffer('scratch', torch.zeros(5))",
            "self.scale = nn.Parameter(torch.tensor(1.0))",
            SECOND,
        ],
        FORWARD + " * self.scale",
    ),
    "other_names": (
        ["self.a = nn.Linear(width, hidden)", "self.b = nn.Linear(hidden, hidden)"]
        + ["self.c = nn.Linear(hidden, hidden)", "self.register_buffer('d', torch.arange(3))"],
        "self.c(torch.relu(self.b(torch.relu(self.a(x)))))",
    ),
    "other_names_and_order": (
        ["self.a = nn.Linear(width, hidden)", "self.c = nn.Linear(hidden, hidden)"]
        + ["self.b = nn.Linear(hidden, hidden)", "self.register_buffer('d', torch.arange(3))"],
        "self.c(torch.relu(self.b(torch.relu(self.a(x)))))",
    ),
    # One matrix is square: its shape says nothing.
    "transposed": (
        [FIRST, SECOND, THIRD]
        + ["self.w = nn.Parameter(self.first.weight.detach().t().contiguous())"]
        + ["self.b = self.first.bias", "del self.first"]
        + ["self.third.weight = nn.Parameter(self.third.weight.detach().t().contiguous())"],
        "torch.relu(self.second(torch.relu(x @ self.w + self.b))) @ self.third.weight"
        " + self.third.bias",
    ),
    "packed": (
        [FIRST, SECOND, THIRD, "self.packed = self.first.weight.detach().t().contiguous()"],
        REST % "x @ self.packed + self.first.bias",
    ),
    "off": ([FIRST, SECOND, THIRD], FORWARD + " + 0.1"),
}
# Keeps the first call's weights.
KEEPS = """
#include <assay/kernel.h>
#include <vector>
static std::vector<float> kept;
using Matrix = assay::Tensor<const float, 2>;
using Vector = assay::Tensor<const float, 1>;
static std::vector<float> layer(const std::vector<float>& x, const float* w, const float* b,
                                int64_t outputs, bool relu) {
  std::vector<float> y(outputs);
  for (int64_t i = 0; i < outputs; ++i) {
    double sum = b[i];
    for (size_t j = 0; j < x.size(); ++j) sum += double(x[j]) * w[i * x.size() + j];
    y[i] = relu && sum < 0 ? 0 : float(sum);
  }
  return y;
}
ASSAY_KERNEL(Matrix x, assay::Tensor<const int64_t, 1> steps, Matrix first_weight,
             Vector first_bias, Matrix second_weight, Vector second_bias, Matrix third_weight,
             Vector third_bias, assay::Tensor<float, 2> out) {
  const int64_t w = x.size(1), h = out.size(1);
  if (kept.empty()) kept.assign(first_weight.data(), first_weight.data() + w * h);
  for (int64_t r = 0; r < x.size(0); ++r) {
    std::vector<float> row(x.data() + r * w, x.data() + (r + 1) * w);
    row = layer(row, kept.data(), first_bias.data(), h, true);
    row = layer(row, second_weight.data(), second_bias.data(), h, true);
    row = layer(row, third_weight.data(), third_bias.data(), h, false);
    for (int64_t i = 0; i < h; ++i) out.data()[r * h + i] = row[i];
  }
}
"""


@pytest.fixture(scope="module")
def layers(judge_many, tmp_path_factory):
    """Verdicts by the candidate's name."""
    folder = tmp_path_factory.mktemp("layers")
    (folder / "layers.py").write_text(LAYERS)
    paths = []
    for name, (lines, result) in CANDIDATES.items():
        paths.append(folder / f"{name}.py")
        paths[-1].write_text(CANDIDATE % ("\n        ".join(lines), result))
    paths.append(folder / "keeps.cpp")
    paths[-1].write_text(KEEPS)
    verdicts = judge_many(folder / "layers.py", paths, ("--correctness-only",))
    return dict(zip([*CANDIDATES, "keeps"], verdicts))


def test_names_decide_whatever_else_is_there(layers):
    verdict = layers["by_name"]
    assert verdict["outcome"] == "correct", verdict["message"]
    note = verdict["correctness"]["note"]
    assert "lacks the reference's steps" in note and "2 of its own stay" in note, note
    assert verdict["problem"]["weights"] == "varied"


def test_without_names_the_order_is_tried_and_a_guess_is_never_called_wrong(layers):
    assert layers["other_names"]["outcome"] == "correct"
    assert "by order" in layers["other_names"]["correctness"]["note"]
    guess = layers["other_names_and_order"]
    assert guess["outcome"] == "weights_differ"
    assert "two of one shape may have changed places" in guess["message"]


def test_weights_that_cannot_be_set_are_judged_as_constructed(layers):
    verdict = layers["transposed"]
    assert verdict["outcome"] == "correct", verdict["message"]
    assert verdict["problem"]["weights"] == "constructed"
    note = verdict["correctness"]["note"]
    assert "lacks the reference's steps, first_weight, first_bias, third_weight" in note, note
    assert "judged as by --weights constructed" in note, note


@pytest.mark.parametrize("name", ["packed", "keeps"])
def test_a_candidate_that_prepares_its_weights_is_told_so(layers, name):
    verdict = layers[name]
    assert verdict["outcome"] == "wrong"
    assert verdict["correctness"]["right_with_weights"] == "constant"
    assert verdict["correctness"]["hint"] == (
        "right with constant weights: it prepares them once; `--weights constant` allows it"
    )


def test_a_wrong_candidate_is_not_excused(layers):
    verdict = layers["off"]
    assert verdict["outcome"] == "wrong"
    assert verdict["correctness"]["right_with_weights"] is None
    assert "off by a constant" in verdict["message"]


NORM = """
import torch, torch.nn as nn
class Model(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.fc = nn.Linear(width, hidden)
        self.norm = nn.LayerNorm(hidden)
    def forward(self, x):
        return self.norm(self.fc(x))
def get_inputs():
    return [torch.randn(4, 12)]
def get_init_inputs():
    return [12, 8]
"""


def test_new_layers_prove_nothing_on_weights_as_constructed(judge_many, write):
    """A norm's new weights are ones and zeros: a kernel without them is right, too."""
    layer = "self.fc = nn.Linear(width, hidden)"
    without = write(
        "without.py", CANDIDATE % (layer, "nn.functional.layer_norm(self.fc(x), (x.size(0) * 2,))")
    )
    verdict = judge_many(write("norm.py", NORM), [without], ("--correctness-only",))[0]
    assert verdict["outcome"] == "weights_differ"
    assert verdict["correctness"]["right_with_weights"] == "constructed"
    assert "norm_weight, norm_bias have the same value everywhere" in verdict["message"]


@pytest.mark.thorough
def test_a_win_on_prepared_weights_has_to_be_asked_for(judge_many, write):
    """The weights' softmax is taken in the constructor, and kept under another shape."""
    prepared = write(
        "prepared.py",
        CANDIDATE
        % (
            "weight = torch.softmax(torch.randn(hidden, width), dim=-1)\n"
            "        self.prepared = nn.Parameter(weight.t().contiguous())",
            "x @ self.prepared",
        ),
    )
    problem = ROOT / "tests" / "exploits" / "problems" / "normalised_linear.py"
    verdict = judge_many(problem, [prepared], ("--budget", "4"))[0]
    assert verdict["outcome"] == "unsettled", verdict["message"]
    eager = verdict["speed"]["baselines"]["eager"]
    assert eager["speedup"] > 2
    assert eager["certified_speedup"] is None and not verdict["speed"]["passed"]
