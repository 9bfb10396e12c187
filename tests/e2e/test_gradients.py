"""`--grad`: forward and backward of a problem, as one call."""

import json

from conftest import CORRECT, GOOD, SOFTMAX, USAGE, WRONG

SIZE = ["--set", "ROWS=32", "--set", "COLUMNS=64"]

FUNCTION = """import torch
class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        y = torch.softmax(x, -1)
        context.save_for_backward(y)
        return y
    @staticmethod
    def backward(context, gradient):
        y, = context.saved_tensors
        return y * (gradient - MEAN)
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return Softmax.apply(x)
"""

KERNEL = """#include <assay/kernel.h>
#include <algorithm>
#include <cmath>
ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<const float, 2> gradient,
             assay::Tensor<float, 2> y, assay::Tensor<float, 2> of_x) {
  const int64_t columns = x.size(1);
  for (int64_t r = 0; r < x.size(0); ++r) {
    const float *in = &x(r, 0), *given = &gradient(r, 0);
    float *out = &y(r, 0), *result = &of_x(r, 0);
    const float most = *std::max_element(in, in + columns);
    double sum = 0, weighted = 0;
    for (int64_t c = 0; c < columns; ++c) sum += out[c] = std::exp(in[c] - most);
    for (int64_t c = 0; c < columns; ++c) out[c] = static_cast<float>(out[c] / sum);
    for (int64_t c = 0; c < columns; ++c) weighted += double(out[c]) * given[c];
    for (int64_t c = 0; c < columns; ++c)
      result[c] = static_cast<float>(out[c] * (given[c] - weighted));
  }
}
"""

NO_GRADIENT = """import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x.argmax(-1)
def get_inputs():
    return [torch.randn(4, 8)]
def get_init_inputs():
    return []
"""


def test_a_backward_of_ones_own_is_judged_against_autograd(assay, write):
    """A backward that forgets to weigh the sum over the row is right in forward alone."""
    right = write("right.py", FUNCTION.replace("MEAN", "(y * gradient).sum(-1, keepdim=True)"))
    wrong = write("wrong.py", FUNCTION.replace("MEAN", "gradient.sum(-1, keepdim=True)"))
    options = [*SIZE, "--correctness-only"]
    run = assay.judge(SOFTMAX, right, wrong, "--grad", *options)
    assert run.code == WRONG, run
    passed, refused = run.verdict
    assert passed["outcome"] == "correct" and refused["outcome"] == "wrong"
    assert passed["problem"]["name"] == "softmax_gradients"
    assert refused["correctness"]["first_mismatch"]["output"] == "x_gradient"
    run = assay.judge(SOFTMAX, wrong, *options)
    assert run.code == GOOD, run


def test_a_kernel_gets_the_gradients_of_outputs(assay, write):
    run = assay.judge(SOFTMAX, write("both.cpp", KERNEL), "--grad", *SIZE, "--budget", "3")
    assert run.code in CORRECT, run


def test_a_problem_without_a_gradient_says_so(assay, write):
    problem = write("argmax.py", NO_GRADIENT)
    run = assay("new", problem, "--grad", "-o", "-")
    assert run.code == USAGE
    assert "no floating-point result" in run.err


def test_a_stub_in_python_is_right_as_it_stands(assay):
    stub = assay.home / "stub.py"
    assert assay("new", SOFTMAX, *SIZE, "--grad", "--form", "python", "-o", stub).code == 0
    run = assay.judge(SOFTMAX, stub, "--grad", *SIZE, "--correctness-only")
    assert run.code == GOOD, run


def test_a_run_with_gradients_stands_apart(assay, write):
    """Of the same folder neither run takes the other's verdicts, nor its pages."""
    wrong = FUNCTION.replace("MEAN", "gradient.sum(-1, keepdim=True)")
    folder = assay.home / "run"
    folder.mkdir()
    (folder / "softmax.py").write_text(wrong)
    arguments = ["run", folder, "--size", "tiny", "--devices", "cpu", "--correctness-only", "-q"]
    run = assay(*arguments)
    assert run.code == 0 and "1 correct" in run.out, run
    run = assay(*arguments, "--grad")
    assert run.code == 0 and "1 wrong" in run.out, run
    rows = [json.loads(line) for line in (folder / "verdicts.jsonl").read_text().splitlines()]
    assert [row["problem"] for row in rows] == ["softmax", "softmax_gradients"]
    assert {(folder / f"report{kind}.html").exists() for kind in ("", "_gradients")} == {True}
    run = assay(*arguments, "--grad")
    assert "1 of 1 were judged before" in run.err, run
    run = assay("score", folder)
    assert run.code == USAGE and "score one kind at a time" in run.err, run


def test_a_match_is_about_both_passes(assay, write):
    """Both sides get the reference with its gradients; the worklog keeps what is judged."""
    run = assay("worklog", "init", SOFTMAX, *SIZE, "--grad", "--budget", "1")
    assert run.code == GOOD and "a match on softmax_gradients begins" in run.out, run
    predict = ["worklog", "predict", "--regime", "memory", "--ratio", "1", "--because", "one pass"]
    assert assay(*predict).code == GOOD
    wrong = FUNCTION.replace("MEAN", "gradient.sum(-1, keepdim=True)")
    attempt = ["worklog", "attempt", "-q", "--budget", "1", "--why"]
    run = assay(*attempt, "its backward forgets the weights", write("mine.py", wrong))
    assert run.code == GOOD and "wrong, by up to" in run.out, run
    run = assay(*attempt, "sums by hand", write("mine.cpp", KERNEL))
    assert run.code == GOOD and "v2: compiled, correct" in run.out, run
    version = (assay.home / "versions" / "v1.py").read_text()
    assert version.startswith(wrong) and "gradients.of_candidate(globals())" in version
    assert assay("worklog", "render").code == GOOD
    run = assay("worklog", "check")
    assert "changed" not in run.out and "suspicious" not in run.out, run


def test_an_export_passes_gradients_on(assay):
    out = assay.home / "out"
    run = assay("export", "openevolve", "softmax", "--size", "tiny", "--grad", "-o", out)
    assert run.code == GOOD, run
    assert '["softmax", "--size", "tiny", "--grad"]' in (out / "assay_judge.py").read_text()
    assert "autograd" in (out / "initial_program.py").read_text()


def test_a_search_asks_for_backward(assay, write):
    answer = write("answer.md", f"```cpp\n{KERNEL}\n```\n")
    prompt = assay.home / "prompt"
    program = write("answer", f"#!/bin/sh\ncat > {prompt}\ncat {answer}\n")
    arguments = ["search", SOFTMAX, *SIZE, "--grad", "--strategy", "sample", "--chains", "1"]
    arguments += ["--budget", "evals=1", "--verdict-seconds", "1", "-q", "--jsonl"]
    run = assay(*arguments, "--proposer", f"command:sh {program}")
    events = [json.loads(line) for line in run.out.splitlines()]
    asked = prompt.read_text()
    assert "Forward and backward are judged as one call" in asked, asked
    assert "assay::Tensor<const float, 2> gradient_1" in asked and "assay_host" not in asked
    assert events[0]["problem"] == "softmax_gradients", run
    (outcome,) = [event["outcome"] for event in events if "outcome" in event][:1]
    assert outcome not in ("wrong", "build_failed", "crashed", "timed_out", "foul"), run
