"""Problems with a check of their own: the answers that pass, and whose fault errors of it are."""
import re

import pytest

from conftest import CORRECT, ROOT, USAGE, WRONG, fits

TOP_K = ROOT / "problems" / "level1" / "top_k_unordered.py"
SAMPLE = ROOT / "problems" / "level1" / "sample_tokens.py"
TINY = ("--size", "tiny", "--one-size")


def python(forward, head=""):
    """A candidate in Python with this body of forward."""
    return (
        f"import torch\n{head}\nclass ModelNew(torch.nn.Module):\n"
        "    def __init__(self, *arguments):\n        super().__init__()\n"
        "        self.arguments = arguments\n        self.last = None\n"
        f"    def forward(self, *inputs):\n{forward}"
    )


# The last of equal elements, and the smallest of the chosen ones first.
OTHER_ORDER = """
        x, = inputs
        best = torch.sort(x.flip(-1), dim=-1, descending=True, stable=True)
        count, = self.arguments
        chosen = best.indices[:, :count].flip(-1)
        return best.values[:, :count].flip(-1), x.shape[1] - 1 - chosen
"""
TOP_K_CANDIDATES = {
    "other_order": (OTHER_ORDER, None),
    "out_of_range": (
        OTHER_ORDER.replace("x.shape[1] - 1 - chosen", "x.shape[1] - chosen"),
        "stands beside position|lies outside of the row",
    ),
    "twice": (
        "        v, i = torch.topk(inputs[0], self.arguments[0])\n"
        "        v[:, 1], i[:, 1] = v[:, 0], i[:, 0]\n        return v, i\n",
        "row 0: position [0-9]+ stands twice",
    ),
    "smallest": (
        "        return tuple(torch.topk(inputs[0], self.arguments[0], largest=False))\n",
        "is among the largest, and is not chosen",
    ),
    "one_behind": (
        "        x, = inputs\n        last, self.last = self.last, x.clone()\n"
        "        return tuple(torch.topk(x if last is None else last, self.arguments[0]))\n",
        "stands beside position",
    ),
    "unwritten": (
        "        v, i = torch.topk(inputs[0], self.arguments[0])\n"
        "        v[3, 2] = float('nan')\n        return v, i\n",
        r"1 of the 256 elements of out are NaN or infinite, the first at \[3, 2\]",
    ),
}

DRAWN = """
        logits, bits = inputs
        order = ORDER
        ends = torch.softmax(logits.gather(1, order), dim=-1).cumsum(dim=-1)
        place = (bits + 0.5) / 2**23 * ends[:, -1:]
        found = torch.searchsorted(ends, place, right=True).clamp(max=ends.shape[1] - 1)
        return order.gather(1, found)
"""
SAMPLE_CANDIDATES = {
    "by_size": (DRAWN.replace("ORDER", "torch.sort(logits, dim=-1).indices"), None),
    "argmax": (
        "        logits, bits = inputs\n"
        "        return logits.argmax(-1, keepdim=True).expand(bits.shape).contiguous()\n",
        "not drawn by their probabilities: .* [0-9]+ samples are expected, and [0-9]+ were given",
    ),
    "uniform": (
        "        logits, bits = inputs\n"
        "        return (bits.long() * logits.shape[1]) >> 23\n",
        "not drawn by their probabilities",
    ),
    "own_numbers": (
        "        logits, bits = inputs\n"
        "        return torch.multinomial(torch.softmax(logits, -1), bits.shape[1], True)\n",
        "token [0-9]+, with probability .*, stands for numbers from",
    ),
}


@pytest.fixture(scope="module")
def verdicts(judge_many, tmp_path_factory):
    """Verdicts by name: of each problem's candidates and of the kernel in C++, by one call each."""
    folder = tmp_path_factory.mktemp("own_check")
    found = {}
    for problem, candidates, kernel in (
        (TOP_K, TOP_K_CANDIDATES, "top_k_unordered/buffer.cpp"),
        (SAMPLE, SAMPLE_CANDIDATES, "sample_tokens/blocks.cpp"),
    ):
        paths = [ROOT / "kernels" / kernel]
        for name, (forward, _) in candidates.items():
            paths.append(folder / f"{name}.py")
            paths[-1].write_text(python(forward))
        options = (*TINY, "--correctness-only")
        judged = judge_many(problem, paths, options)
        found.update({path.name: verdict for path, verdict in zip(paths, judged)})
    return found


@pytest.mark.parametrize("name", ["buffer.cpp", "blocks.cpp", "other_order.py", "by_size.py"])
def test_right_answers_of_any_order_pass(verdicts, name):
    verdict = verdicts[name]
    assert verdict["outcome"] == "correct", verdict["message"]
    fits(verdict, "verdict")
    gate = verdict["correctness"]
    assert gate["tolerance"] == "check"
    assert gate["error_ratio"] == 0
    assert gate["precision_class"] is None and gate["required_class"] is None


@pytest.mark.parametrize(
    "name, words",
    [
        (name, words)
        for name, (_, words) in {**TOP_K_CANDIDATES, **SAMPLE_CANDIDATES}.items()
        if words
    ],
)
def test_wrong_answers_are_told_by_the_check(verdicts, name, words):
    verdict = verdicts[f"{name}.py"]
    assert verdict["outcome"] == "wrong", verdict["message"]
    assert re.search(words, verdict["message"]), verdict["message"]
    assert verdict["correctness"]["error_ratio"] is None


def test_other_sizes_are_asked_about_too(assay, write):
    # Right at the size that is asked for alone.
    source = python(OTHER_ORDER.replace("        x, = inputs\n",
                                        "        x, = inputs\n"
                                        "        if x.shape[1] != 512:\n"
                                        "            return tuple(torch.topk(x, *self.arguments,"
                                        " largest=False))\n"))
    run = assay.judge(TOP_K, write("candidate.py", source), "--size", "tiny", "--correctness-only",
                      "--ragged", "COLUMNS=100:200")
    assert run.code == WRONG, run
    assert "right at the size that was asked for, but at COLUMNS = " in run.verdict["message"], run
    assert "is among the largest, and is not chosen" in run.verdict["message"], run


def test_timed_calls_are_checked_and_a_late_fault_is_found(assay, write):
    # Gate 1 and warm-up see right answers; later calls give the last finite one of them again. One
    # with infinities would be refused before the check is asked.
    source = python(
        "        x, = inputs\n        self.calls = getattr(self, 'calls', 0) + 1\n"
        "        if self.calls < 40 or self.last is None:\n"
        "            found = tuple(torch.topk(x, *self.arguments, sorted=False))\n"
        "            if not found[0].isfinite().all():\n"
        "                return found\n"
        "            self.last = found\n"
        "        return tuple(part.clone() for part in self.last)\n"
    )
    run = assay.judge(TOP_K, write("stale.py", source), *TINY)
    assert run.code == WRONG, run
    assert "the problem's check: " in run.verdict["message"], run
    assert run.verdict["speed"] is None or run.verdict["correctness"]["calls_checked"] > 20, run


@pytest.mark.thorough
def test_a_whole_verdict_says_who_judged(assay):
    kernel = ROOT / "kernels" / "top_k_unordered" / "buffer.cpp"
    run = assay("judge", TOP_K, kernel, *TINY, "--budget", "8")
    assert run.code in CORRECT, run
    assert "judged by the problem's own check" in run.out, run


PROBLEM = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.argsort(x, dim=-1)
def get_inputs():
    return [torch.randn(16, 32)]
def check(inputs, outputs):
    CHECK
"""
RIGHT = python("        return torch.argsort(inputs[0], dim=-1, stable=True)\n")
# In range, and in another order.
OTHER = python("        return torch.argsort(inputs[0], dim=-1).flip(-1)\n")


@pytest.mark.parametrize(
    "check, words",
    [
        ("return 'the rows are too short'",
         "the reference itself does not pass the problem's own check: the rows are too short"),
        pytest.param(
            "return True", "the problem's own check returns True; it must return None",
            marks=pytest.mark.thorough,
        ),
        ("inputs[0].gather(-1, outputs[0])", "the problem's own check fails: "),
        ("if (outputs[0].diff() != 0).all() and not inputs[0].gather(1, outputs[0].clamp(0, 31))"
         ".diff().ge(0).all(): raise ValueError('not in order')",
         "the problem's own check fails: "),
        # The machine was blamed: the draw was left out, and its host was gone.
        ("import os; inputs[0].abs().max() > 500 and os._exit(3)",
         "the problem's own check ended the reference's host"),
    ],
    ids=["reference_fails", "no_sentence", "on_garbage", "on_a_candidate", "ends_its_host"],
)
def test_faults_of_a_check_are_the_problems(assay, write, check, words):
    problem = write("problem.py", PROBLEM.replace("CHECK", check))
    run = assay.judge(problem, write("other.py", OTHER), "--correctness-only")
    assert run.code == USAGE, run
    assert words in run.out + run.err, run


def test_a_check_that_accepts_everything_has_no_winner_and_is_reported(assay, write):
    problem = write("problem.py", PROBLEM.replace("CHECK", "return None"))
    run = assay.judge(problem, write("other.py", OTHER))
    assert run.verdict["outcome"] == "unsettled", run
    assert "all zeros pass gate 1" in run.verdict["message"], run
    audit = assay("audit", problem)
    assert audit.code == 3, audit
    assert "zero-output" in audit.out, audit


def test_gradients_are_refused(assay, write):
    problem = write("problem.py", PROBLEM.replace("CHECK", "return None"))
    run = assay.judge(problem, write("right.py", RIGHT), "--grad")
    assert run.code == USAGE, run
    assert "knows nothing of gradients" in run.out + run.err, run


LARGE = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        out = torch.zeros_like(x)
        CHANGE
        return out
def get_inputs():
    return [torch.randn(4096, 256)]
def get_init_inputs():
    return []
"""


@pytest.mark.parametrize(
    ("change", "outcome"), [("out[1000] = x[1000] * 2", "correct"), ("", "unsettled")]
)
def test_a_part_of_a_large_output_alone_does_not_say_that_no_work_is_seen(
    assay, write, change, outcome
):
    problem = LARGE.replace("CHANGE", change)
    candidate = write("same.py", problem.replace("class Model", "class ModelNew"))
    run = assay.judge(write("problem.py", problem), candidate, "--correctness-only")
    assert run.verdict["outcome"] == outcome, run


EIGH = """
import torch
class {}(torch.nn.Module):
    def forward(self, x):
        values, vectors = torch.linalg.eigh(x)
        return {}
def get_inputs():
    return [torch.randn(12, 12).cov()]
"""


def test_a_ready_check_accepts_each_right_factorisation(assay, write):
    """Eigenvectors of another sign were wrong, and the message led to --tolerance allclose."""
    vectors = {"copy": "vectors", "turned": "-vectors", "long": "vectors * 1.01"}
    vectors["order"] = "vectors.roll(1, 1)"
    paths = [
        write(f"{name}.py", EIGH.format("ModelNew", text)) for name, text in vectors.items()
    ]
    plain = write("plain.py", EIGH.format("Model", "vectors"))
    checked = write("checked.py", EIGH.format("Model", "vectors") + 'check = "eigh"\n')
    run = assay.judge(checked, *paths, "--correctness-only")
    outcomes = [verdict["outcome"] for verdict in run.verdict]
    assert outcomes == ["correct", "correct", "wrong", "wrong"], run
    assert "the vectors are not orthonormal" in run.verdict[2]["message"], run
    assert "not in the order of torch.linalg" in run.verdict[3]["message"], run
    run = assay.judge(plain, *paths, "--correctness-only")
    assert run.code in (USAGE, WRONG), run  # float64 may give other signs
    said = run.err if run.code == USAGE else run.verdict[1]["message"]
    assert '`check = "eigh"`' in said and "not unique" in said, run
    assert "allclose" not in run.out + run.err, run
