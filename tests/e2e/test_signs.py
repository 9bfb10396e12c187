"""Files in KernelBench's form draw their inputs by torch.rand, so no value is negative: relu is the
identity there, and a norm of absolute values is a mean. Gate 1 and timed calls draw random signs,
where the reference bears them.
"""

import json

import pytest

HEAD = "import torch\nimport torch.nn as nn\n"

PROBLEM = """
batch_size, dim = 16, 512
class Model(nn.Module):
    def forward(self, x):
        return {}
def get_inputs():
    return [{}]
def get_init_inputs():
    return []
"""

# The reference, what passes on positive values alone, and an honest program.
SHORTCUTS = {
    "relu": ("torch.relu(x)", "x.clone()", "x.clamp(min=0)"),
    "leaky_relu": (
        "torch.nn.functional.leaky_relu(x, 0.01)",
        "x.clone()",
        "torch.where(x > 0, x, 0.01 * x)",
    ),
    "elu": (
        "torch.nn.functional.elu(x)",
        "x.clone()",
        "torch.where(x > 0, x, torch.expm1(x))",
    ),
    "selu": (
        "torch.selu(x)",
        "x * 1.0507009873554805",
        "1.0507009873554805 * torch.where(x > 0, x, 1.6732632423543772 * torch.expm1(x))",
    ),
    "l1_norm": (
        "x / torch.mean(torch.abs(x), dim=1, keepdim=True)",
        "x / x.mean(dim=1, keepdim=True)",
        "x * (x.shape[1] / x.abs().sum(dim=1, keepdim=True))",
    ),
    "softsign": ("x / (1 + torch.abs(x))", "x / (1 + x)", "torch.nn.functional.softsign(x)"),
}


def problem(forward, inputs="torch.rand(batch_size, dim)"):
    return HEAD + PROBLEM.format(forward, inputs)


def candidate(forward):
    return (
        HEAD
        + f"class ModelNew(nn.Module):\n    def forward(self, x):\n        return {forward}\n"
    )


def judged(assay, write, text, *forwards, options=("--correctness-only",)):
    paths = [write(f"candidate_{i}.py", candidate(forward)) for i, forward in enumerate(forwards)]
    run = assay.judge(write("problem.py", text), *paths, *options)
    assert run.out, run
    return run.verdict if len(paths) > 1 else [run.verdict]


# One of each sort in brief: the identity, a multiple, a formula.
BRIEF = ("relu", "selu", "l1_norm")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in BRIEF else pytest.mark.thorough)
        for name in SHORTCUTS
    ],
)
def test_what_is_right_on_positive_values_alone_is_wrong(assay, write, name):
    reference, shortcut, honest = SHORTCUTS[name]
    wrong, right = judged(assay, write, problem(reference), shortcut, honest)
    assert wrong["outcome"] == "wrong", wrong["message"]
    assert [d["kind"] for d in wrong["correctness"]["draws"] if d["result"] == "failed"] == [
        "signs"
    ]
    assert right["outcome"] == "correct", right["message"]


def test_inputs_that_the_reference_needs_positive_stay_positive_and_the_card_says_so(assay, write):
    for forward, honest in (
        ("torch.sqrt(x) + 1", "x ** 0.5 + 1"),
        ("torch.log(x + 0.01)", "torch.log2(x + 0.01) * 0.6931471805599453"),
    ):
        (verdict,) = judged(assay, write, problem(forward), honest)
        assert verdict["outcome"] == "correct", verdict["message"]
        assert "inputs keep their signs: the reference needs it" in verdict["correctness"]["note"]
        (signs,) = [d for d in verdict["correctness"]["draws"] if d["kind"] == "signs"]
        assert signs["result"] == "dropped"


def test_where_no_draw_tells_a_copy_from_the_work_nobody_wins(assay, write):
    """relu is the identity where a logarithm keeps its values positive."""
    text = problem("torch.relu(x) + 1e-9 * x * torch.log(x + 1e-30)")
    (verdict,) = judged(assay, write, text, "x.clone()")
    assert verdict["outcome"] == "unsettled", verdict["message"]
    assert "a copy of x passes for out" in verdict["message"]


def test_a_problem_that_is_a_multiple_of_its_input_may_be_solved_so(assay, write):
    (verdict,) = judged(assay, write, problem("x * 3.14"), "3.14 * x")
    assert verdict["outcome"] == "correct", verdict["message"]


# Remembers the inputs that it saw, and their results.
REMEMBERS = (
    HEAD
    + """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.known = None
    def forward(self, x):
        if self.known is None or not torch.equal(self.known[0], x):
            self.known = x.clone(), torch.tanh(x).cumsum(1)
        return self.known[1]
"""
)


@pytest.mark.parametrize(
    "extra",
    (
        "torch.manual_seed(0), torch.randn(64, 256)",
        pytest.param("CONSTANT", marks=pytest.mark.thorough),
    ),
)
def test_a_get_inputs_that_repeats_itself_gets_the_judges_values(assay, write, extra):
    inputs = extra if extra == "CONSTANT" else f"({extra})[1]"
    text = problem("torch.tanh(x).cumsum(1)", inputs).replace(
        "class Model", "CONSTANT = torch.randn(64, 256)\nclass Model", 1
    )
    path = write("problem.py", text)
    run = assay.judge(path, write("remembers.py", REMEMBERS), "--budget", "10")
    assert run.verdict["outcome"] != "faster", run
    assert "the same values under every seed: the judge's own were used" in run.verdict[
        "correctness"
    ]["note"]
    audit = assay("audit", path, "--json")
    findings = [f["finding"] for f in json.loads(audit.out)["problems"][0]["findings"]]
    assert "same-values" in findings, audit


def test_timed_calls_have_random_signs(assay, write):
    """A candidate that is right on its first calls, and then relies on positive values."""
    text = (
        HEAD
        + """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
    def forward(self, x):
        self.calls += 1
        return torch.relu(x) if self.calls <= 16 else x.clone()
"""
    )
    run = assay.judge(
        write("problem.py", problem("torch.relu(x)")), write("late.py", text), "--budget", "20"
    )
    assert run.verdict["outcome"] == "wrong", run
    assert "wrong in a timed call" in run.verdict["message"], run
