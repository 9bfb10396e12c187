"""Every way in which a problem or the machine can be unusable is said once, clearly, with the right
exit code.
"""

import json
import os
import subprocess
import textwrap

import pytest

from conftest import CORRECT, ENVIRONMENT, GOOD, ROOT, SOFTMAX, USAGE, WRONG

COPY = """
#include <assay/kernel.h>
ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<float, 2> out) {
  for (int64_t i = 0; i < x.size(0) * x.size(1); ++i) out.data()[i] = 2 * x.data()[i];
}
"""

GOOD_PROBLEM = """
import torch
import torch.nn as nn

ROWS = 16
COLUMNS = ROWS * 4

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return x * 2

def get_inputs():
    return [torch.randn(ROWS, COLUMNS)]

def get_init_inputs():
    return []
"""

BAD = {
    "not_python": ("int main() { return 0; }", USAGE, "line 1"),
    "no_model": (GOOD_PROBLEM.replace("class Model(nn.Module)", "class Other"), USAGE, "Model"),
    "no_get_inputs": (GOOD_PROBLEM.replace("def get_inputs", "def inputs"), USAGE, "get_inputs"),
    "inputs_throw": (
        GOOD_PROBLEM.replace(
            "return [torch.randn", "raise ValueError('no luck'); return [torch.randn"
        ),
        USAGE,
        "no luck",
    ),
    "forward_throws": (
        GOOD_PROBLEM.replace("return x * 2", "raise RuntimeError('broken')"),
        USAGE,
        "broken",
    ),
    "gives_nan": (
        GOOD_PROBLEM.replace("return x * 2", "return torch.log(-x.abs() - 1)"),
        USAGE,
        "NaN",
    ),
    "complex_output": (
        GOOD_PROBLEM.replace("return x * 2", "return torch.complex(x, x)"),
        USAGE,
        "complex",
    ),
    "string_output": (GOOD_PROBLEM.replace("return x * 2", "return 'text'"), USAGE, "str"),
    "random": (
        GOOD_PROBLEM.replace(
            "return x * 2", "return torch.nn.functional.dropout(x, 0.5, training=True)"
        ),
        USAGE,
        "random",
    ),
    "imports_missing": ("import no_such_module\n" + GOOD_PROBLEM, ENVIRONMENT, "no_such_module"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_problem(assay, write, name):
    source, code, text = BAD[name]
    run = assay.judge(write("problem.py", source), write("copy.cpp", COPY))
    assert run.code == code, run
    assert text in run.err, run
    assert text in json.loads(run.out)["message"], run


def test_missing_file_and_unknown_name(assay, write):
    copy = write("copy.cpp", COPY)
    assert assay.judge("missing.py", copy).code == USAGE
    run = assay.judge("softmacks", copy)
    assert run.code == USAGE, run


def test_set_changes_what_is_derived(assay, write):
    run = assay.judge(
        write("problem.py", GOOD_PROBLEM),
        write("copy.cpp", COPY),
        "--set",
        "ROWS=24",
        "--correctness-only",
    )
    assert "input x float32[24, 96]" in run.verdict["problem"]["signature"], run


def test_unknown_set_name_lists_the_constants(assay, write):
    run = assay.judge(
        write("problem.py", GOOD_PROBLEM), write("copy.cpp", COPY), "--set", "ROWZ=24"
    )
    assert run.code == USAGE and "ROWS" in run.err, run


def test_unknown_size(assay, write):
    run = assay.judge(SOFTMAX, write("copy.cpp", COPY), "--size", "gigantic")
    assert run.code == USAGE and "tiny" in run.err, run


def test_too_large_for_memory_is_said_before_it_is_tried(assay, write):
    source = GOOD_PROBLEM.replace("ROWS = 16", "ROWS = 3000000").replace("ROWS * 4", "4000")
    run = assay.judge(write("problem.py", source), write("copy.cpp", COPY))
    assert run.code == ENVIRONMENT, run
    assert "--set" in run.err and "GB" in run.err, run


def test_machine_without_bubblewrap(assay, write):
    run = assay.judge(SOFTMAX, write("copy.cpp", COPY), ASSAY_BWRAP="/no/such/bwrap")
    assert run.code == ENVIRONMENT and "bubblewrap" in run.err, run


def test_machine_without_pytorch(assay, write):
    python = write("python", '#!/bin/sh\nexec /usr/bin/python3 -S -I "$@"\n')
    os.chmod(python, 0o755)
    run = assay.judge(SOFTMAX, write("copy.cpp", COPY), ASSAY_PYTHON=python)
    assert run.code == ENVIRONMENT and "PyTorch" in run.err, run


def test_machine_without_compiler(assay, write, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    run = assay.judge(
        SOFTMAX,
        write("copy.cpp", COPY),
        "--size",
        "tiny",
        PATH=str(empty),
        ASSAY_BWRAP="/usr/bin/bwrap",
    )
    assert run.code == ENVIRONMENT and "g++" in run.err, run


def test_a_reference_far_from_float64_is_refused_unless_asked_for(assay, write):
    """A public model normalises batches of two values: its float32 result is noise."""
    path = write("problem.py", GOOD_PROBLEM.replace("return x * 2", "return (x + 1e9) - 1e9"))
    candidate = write("copy.cpp", COPY.replace("2 * x.data()[i]", "(x.data()[i] + 1e9f) - 1e9f"))
    run = assay.judge(path, candidate)
    assert run.code == USAGE and "float64" in run.err and "allclose" in run.err, run
    run = assay.judge(path, candidate, "--tolerance", "allclose:1e-2", "--correctness-only")
    assert run.code in CORRECT, run


def test_baseline_compiled_runs_or_says_why_not(assay, write):
    """PyTorch before 2.0 has no torch.compile."""
    has = subprocess.run(["/usr/bin/python3", "-c", "import torch; torch.compile"]).returncode == 0
    candidate = ROOT / "kernels" / "softmax" / "fused.cpp"
    run = assay.judge(SOFTMAX, candidate, "--size", "tiny", "--baseline", "compiled")
    if has:
        assert run.code in CORRECT and "compiled" in run.verdict["speed"]["baselines"], run
    else:
        assert run.code == ENVIRONMENT and "torch.compile" in run.err and "eager" in run.err, run


def test_bad_flags(assay, write):
    copy = write("copy.cpp", COPY)
    for extra in (
        ["--p", "0"],
        ["--p", "nan"],
        ["--threads", "1000"],
        ["--baseline", "lazy"],
        ["--memory", "much"],
        ["--tolerance", "loose"],
        ["--precision", "float12"],
        ["--set", "ROWS"],
        ["--no-such-flag"],
    ):
        run = assay.judge(SOFTMAX, copy, "--size", "tiny", *extra)
        assert run.code == USAGE, (extra, run)


def test_several_kinds_of_arguments(assay, write):
    """Parameters, a scalar, several outputs, an integer and a bool one, in one problem."""
    problem = """
        import torch
        class Model(torch.nn.Module):
            def __init__(self, features):
                super().__init__()
                self.scale = torch.nn.Parameter(torch.randn(features))
            def forward(self, x, factor: float):
                y = x * self.scale * factor
                return y, x.argmax(dim=1), x > 0
        def get_inputs():
            return [torch.randn(32, 100), 1.5]
        def get_init_inputs():
            return [100]
        """
    candidate = """
        #include <assay/kernel.h>
        #include <math.h>
        ASSAY_KERNEL(assay::Tensor<const float, 2> x, double factor,
                     assay::Tensor<const float, 1> scale, assay::Tensor<float, 2> y,
                     assay::Tensor<int64_t, 1> largest, assay::Tensor<bool, 2> positive) {
          for (int64_t r = 0; r < x.size(0); ++r) {
            int64_t best = 0;
            for (int64_t c = 0; c < x.size(1); ++c) {
              // As in PyTorch, the first NaN is larger than anything.
              if (x(r, c) > x(r, best) || (isnan(x(r, c)) && !isnan(x(r, best)))) best = c;
              y(r, c) = x(r, c) * scale(c) * float(factor);
              positive(r, c) = x(r, c) > 0;
            }
            largest(r) = best;
          }
        }
        """
    run = assay.judge(
        write("problem.py", textwrap.dedent(problem)),
        write("kernel.cpp", textwrap.dedent(candidate)),
    )
    assert run.code in CORRECT, run


LINEAR = """
import torch
class Model(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = torch.nn.Linear(features, features)
    def forward(self, x):
        return torch.relu(self.linear(x))
def get_inputs():
    return [torch.randn(64, 64)]
def get_init_inputs():
    return [64]
"""


def test_python_form(judge_many, write):
    """KernelBench's form of candidate, with weights taken over by name."""
    path = write("problem.py", LINEAR)
    right = LINEAR.split("def get_inputs")[0].replace("class Model", "class ModelNew")
    sources = {
        "right.py": right,
        "renamed.py": right.replace("self.linear", "self.other"),
        "wrong.py": right.replace("torch.relu", "torch.tanh"),
    }
    paths = [write(name, source) for name, source in sources.items()]
    as_it_is, renamed, wrong = judge_many(path, paths, ["--correctness-only"])
    assert as_it_is["correctness"]["passed"], as_it_is
    assert as_it_is["correctness"]["note"] is None, as_it_is
    assert renamed["correctness"]["passed"], renamed
    assert "by order" in renamed["correctness"]["note"], renamed
    assert wrong["outcome"] == "wrong", wrong


@pytest.mark.thorough
def test_python_form_is_not_faster_than_itself(assay, write):
    path = write("problem.py", LINEAR)
    run = assay.judge(path, write("same.py", LINEAR.replace("class Model", "class ModelNew")))
    assert run.verdict["correctness"]["passed"] and run.verdict["outcome"] != "faster", run


OWN_CLASS = "init inputs of a class of its own"
MADE_BY_FORWARD = "parameters that forward makes"
ONLY_THE_ORACLES_WAY = {
    # Pickled, they name their class, and that is not there before the file is imported.
    OWN_CLASS: """
        class Scale:
            factor = 2
        class Model(torch.nn.Module):
            def __init__(self, scale):
                super().__init__()
                self.scale = scale
            def forward(self, x):
                return self.scale.factor * x
        def get_init_inputs():
            return [Scale()]
        """,
    MADE_BY_FORWARD: """
        class Model(torch.nn.Module):
            def forward(self, x):
                if not hasattr(self, "weight"):
                    self.weight = torch.nn.Parameter(torch.full((1,), 2.0))
                return self.weight * x
        """,
}


@pytest.mark.parametrize(
    "name", [OWN_CLASS, pytest.param(MADE_BY_FORWARD, marks=pytest.mark.thorough)]
)
def test_a_reference_that_cannot_be_loaded_as_a_candidate_is_timed(assay, write, name):
    problem = "import torch\n" + textwrap.dedent(ONLY_THE_ORACLES_WAY[name])
    problem += "def get_inputs():\n    return [torch.randn(64, 64)]\n"
    weight = "assay::Tensor<const float, 1> weight, " if "weight" in problem else ""
    factor = "weight.data()[0]" if weight else "2"
    candidate = f"""
        #include <assay/kernel.h>
        ASSAY_KERNEL(assay::Tensor<const float, 2> x, {weight}assay::Tensor<float, 2> out) {{
          for (int64_t i = 0; i < x.size(0) * x.size(1); ++i)
            out.data()[i] = {factor} * x.data()[i];
        }}
        """
    path = write("p.py", problem)
    run = assay.judge(path, write("c.cpp", textwrap.dedent(candidate)), "--budget", "40")
    assert run.verdict["correctness"]["passed"], run
    assert run.verdict["speed"]["baselines"]["eager"]["pairs"] >= 3, run


def test_init_inputs_that_no_candidate_can_be_given_are_told(assay, write):
    problem = "import torch\n" + textwrap.dedent(ONLY_THE_ORACLES_WAY[OWN_CLASS])
    problem += "def get_inputs():\n    return [torch.randn(64, 64)]\n"
    run = assay("judge", write("p.py", problem), write("c.py", problem))
    assert run.code == USAGE and "cannot be handed to a candidate in Python" in run.err, run


def test_values_that_a_file_draws_as_it_is_imported_are_the_same_everywhere(assay, write):
    problem = """
        import torch
        SHIFT = torch.randn(64)
        class Model(torch.nn.Module):
            def forward(self, x):
                return x + SHIFT
        def get_inputs():
            return [torch.randn(64, 64)]
        """
    path = write("p.py", textwrap.dedent(problem))
    copy = textwrap.dedent(problem).replace("Model(", "ModelNew(")
    run = assay.judge(path, write("c.py", copy), "--budget", "5")
    assert run.verdict["correctness"]["passed"], run


def test_tf32_inside_is_named(assay, write):
    problem = GOOD_PROBLEM.replace("return x * 2", "return x @ x.t()")
    candidate = """
        #include <assay/kernel.h>
        #include <cstring>
        static float tf32(float value) {  // 10 explicit bits, as tensor cores take them
          uint32_t bits;
          std::memcpy(&bits, &value, 4);
          bits = (bits + 0x1000) & 0xFFFFE000;
          std::memcpy(&value, &bits, 4);
          return value;
        }
        ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<float, 2> out) {
          for (int64_t i = 0; i < x.size(0); ++i)
            for (int64_t j = 0; j < x.size(0); ++j) {
              float sum = 0;
              for (int64_t k = 0; k < x.size(1); ++k) sum += tf32(x(i, k)) * tf32(x(j, k));
              out(i, j) = sum;
            }
        }
        """
    path, kernel = write("problem.py", problem), write("kernel.cpp", textwrap.dedent(candidate))
    run = assay.judge(path, kernel)
    assert run.code == WRONG and "tf32" in str(run.verdict["correctness"]), run
    run = assay.judge(path, kernel, "--precision", "tf32", "--correctness-only")
    assert run.verdict["correctness"]["passed"], run
    run = assay.judge(path, kernel, "--tolerance", "allclose:1e-2", "--correctness-only")
    assert (
        run.verdict["correctness"]["passed"] in (True, False)
        and run.verdict["correctness"]["tolerance"] == "allclose:1e-2"
        and run.verdict["correctness"]["required_class"] is None
    )


# Answers in KernelBench's form read the problem's sizes from constants at their own top. With --set
# the problem had the new value, the candidate the old one, and was called wrong.
SIZED = """
import torch
import torch.nn as nn

WIDTH = 64


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.offset = torch.ones(WIDTH)

    def forward(self, x):
        return x + self.offset


def get_inputs():
    return [torch.rand(4, WIDTH)]
"""


def test_set_reaches_the_constants_of_a_python_candidate(assay, write):
    candidate = write("answer.py", SIZED.replace("Model(", "ModelNew("))
    arguments = ["--set", "WIDTH=16", "--correctness-only"]
    run = assay.judge(write("sized.py", SIZED), candidate, *arguments)
    assert run.code == GOOD and run.verdict["correctness"]["passed"], run


def test_messages_name_the_files_as_the_user_does(assay, write):
    source = SIZED.replace("x + self.offset", "x + torch.ones(3)")
    candidate = write("answer.py", source.replace("Model(", "ModelNew("))
    run = assay.judge(write("sized.py", source), candidate)
    assert run.code == USAGE and "sized.py line 14: RuntimeError" in run.err, run
    run = assay.judge(write("sized.py", SIZED), candidate)
    assert run.code == WRONG and "answer.py line 14: RuntimeError" in run.verdict["message"], run
    assert run.verdict["correctness"]["first_mismatch"] is None, run
