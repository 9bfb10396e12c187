"""Python as ordinary files have it: arguments that are parsed at the top, interpreters that do not
end, inputs that share elements, complex numbers; and hints that propose what was tried.
"""

import pytest

HEAD = """import argparse
import torch
import torch.nn as nn
parser = argparse.ArgumentParser()
parser.add_argument("--width", type=int, default=12)
WIDTH = parser.parse_args().width
"""
# A gram matrix, whose factors share their elements, and a rotation by a complex buffer.
PROBLEM = HEAD + """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        angles = torch.arange(float(WIDTH))
        self.register_buffer("freqs_cis", torch.polar(torch.ones(WIDTH), angles))
    def forward(self, a, b, z):
        return a @ b + torch.view_as_real(z * self.freqs_cis).sum(-1)
def get_inputs():
    a = torch.randn(WIDTH, WIDTH)
    return [a, a.t(), torch.randn(WIDTH, WIDTH, dtype=torch.complex64)]
"""
COPY = PROBLEM.replace("class Model", "class ModelNew")
LINGERS = """
import atexit, threading, time
atexit.register(time.sleep, 1000)
threading.Thread(target=time.sleep, args=(1000,)).start()
"""
NATIVE = """
#include <assay/kernel.h>
ASSAY_KERNEL(assay::Tensor<const float, 2> a, assay::Tensor<const float, 2>,
             assay::Tensor<const float, 3> z, assay::Tensor<const float, 2> freqs_cis,
             assay::Tensor<float, 2> out) {
  const int64_t n = a.size(0);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) {
      const float re = freqs_cis(j, 0), im = freqs_cis(j, 1);
      double sum = 0;
      for (int64_t k = 0; k < n; ++k) sum += double(a(i, k)) * a(j, k);
      out(i, j) = float(sum + (z(i, j, 0) * re - z(i, j, 1) * im) +
                        (z(i, j, 0) * im + z(i, j, 1) * re));
    }
}
"""


@pytest.fixture
def judged(judge_many, tmp_path):
    """judged(problem, {name: source}) gives the verdicts by name, on correctness alone."""

    def run(problem, candidates):
        path = tmp_path / "problem.py"
        path.write_text(problem)
        paths = [tmp_path / name for name in candidates]
        for one, source in zip(paths, candidates.values()):
            one.write_text(source)
        verdicts = judge_many(path, paths, ("--correctness-only",))
        return dict(zip(candidates, verdicts))

    return run


def test_files_with_parsers_threads_shared_elements_and_complex_numbers(judged):
    verdicts = judged(
        PROBLEM,
        {
            "copy.py": COPY,
            "shared.py": COPY.replace("a @ b", "a @ a.t()"),
            "lingers.py": COPY + LINGERS,
            "native.cpp": NATIVE,
            "wrong.py": COPY.replace("z * self.freqs_cis", "z"),
            "required.py": COPY.replace("default=12", "required=True"),
        },
    )
    outcomes = [verdict["outcome"] for verdict in verdicts.values()]
    assert outcomes == 4 * ["correct"] + ["wrong", "build_failed"], verdicts
    assert "the following arguments are required: --width" in verdicts["required.py"]["message"]
    signature = verdicts["native.cpp"]["problem"]["signature"]
    assert "input z float32[12, 12, 2]" in signature, signature
    assert "parameter freqs_cis float32[12, 2]" in signature, signature


RELU = """
import torch
class {}(torch.nn.Module):
    kept = None
    def forward(self, x):
        {}
def get_inputs():
    return [torch.randn(16, 64)]
"""


def test_a_hint_proposes_only_what_was_tried(judged):
    bodies = {
        "coarse.py": "return torch.relu(x.bfloat16().float())",
        # Huge values overflow, whatever the precision that is asked for.
        "half.py": "return torch.relu(x.half().float())",
        "keeps.py": "self.kept = torch.relu(x) if self.kept is None else self.kept; "
        "return self.kept.clone()",
    }
    candidates = {name: RELU.format("ModelNew", body) for name, body in bodies.items()}
    verdicts = judged(RELU.format("Model", "return torch.relu(x)"), candidates)
    hints = {name: verdict["correctness"]["hint"] for name, verdict in verdicts.items()}
    assert "with --precision bfloat16 all draws of this size pass" in hints["coarse.py"]
    assert "--precision" not in hints["half.py"] and "float16" in hints["half.py"], hints
    assert "gives the results of an earlier call on other inputs" in hints["keeps.py"], hints


def simple(forward, inputs="[torch.randn(8, 12)]", name="Model", arguments="x"):
    return (
        "import torch\nimport torch.nn as nn\n"
        f"class {name}(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.layer = nn.Linear(12, 3)\n"
        f"    def forward(self, {arguments}):\n        {forward}\n"
        f"def get_inputs():\n    return {inputs}\ndef get_init_inputs():\n    return []\n"
    )


# Right candidates were wrong or ended the judge, and a wrong one passed, as no oracle ran.
def test_what_forward_asks_of_grad_mode_dtypes_and_views_is_judged(judged):
    turns_on = "torch.set_grad_enabled(True); return self.layer(x)"
    problems = {
        simple(turns_on): {"turns_on.py": ("correct", simple(turns_on, name="ModelNew"))},
        simple("return x + y", "[torch.randn(8, 12), torch.randn(1, 12).expand(8, 12)]",
               arguments="x, y"): {
            "one_row.py": ("correct", simple("return x + y[:1]", name="ModelNew",
                                             arguments="x, y"))
        },
        simple("return torch.softmax(x.float(), -1)"): {
            "no_maximum.py": (
                "wrong", simple("return x.exp() / x.exp().sum(-1, keepdim=True)", name="ModelNew")
            )
        },
    }  # fmt: skip
    for problem, candidates in problems.items():
        verdicts = judged(problem, {name: source for name, (_, source) in candidates.items()})
        for name, (outcome, _) in candidates.items():
            assert verdicts[name]["outcome"] == outcome, verdicts[name]
