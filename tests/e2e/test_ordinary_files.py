"""Candidates as they lie: a model's answer with prose and fences, and a folder of several files."""

import json

import pytest

from conftest import BUILD_FAILED, ENVIRONMENT, GOOD, USAGE

PROBLEM = """import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2
def get_inputs():
    return [torch.randn(16, 64)]
"""
PYTHON = """import torch

class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2
"""
NATIVE = """#include <assay/kernel.h>
ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<float, 2> y) {
  for (int64_t i = 0; i < x.size(0) * x.size(1); ++i)
    y.data()[i] = x.data()[i] > 0 ? 2 * x.data()[i] : 0;
}
"""
IN_C = """#include <assay/kernel.h>
ASSAY_KERNEL_C(ASSAY_TENSOR(const float, 2, x), ASSAY_TENSOR(float, 2, y)) {
  for (int64_t i = 0; i < x_size[0] * x_size[1]; ++i) y[i] = x[i] > 0 ? 2 * x[i] : 0;
}
"""
EXCERPT = "```\nclass ModelNew: ...\n```\n"


def fenced(code, language=""):
    return f"```{language}\n{code}```\n"


@pytest.fixture
def problem(write):
    return write("problem.py", PROBLEM)


def test_a_models_answer_is_a_candidate_as_it_lies(judge_many, write, problem):
    wrong = PYTHON.replace("* 2", "* 3")
    answers = {
        "prose.py": "Here is the kernel:\n\n" + PYTHON + "\nIt doubles what is positive.\n",
        "fences.py": "First:\n" + fenced(wrong, "python") + "Or:\n" + fenced(PYTHON, "python"),
        "thoughts.py": "<think>\n" + fenced(wrong) + "</think>\n" + fenced(PYTHON) + EXCERPT,
        "cut.md": fenced(PYTHON, "python") + "Or even:\n```python\n" + wrong,
        "native.md": "# A kernel\n\n" + fenced(NATIVE, "cpp") + fenced("make\n", "sh"),
        "native.cpp": "It's simple.\n" + fenced(NATIVE),
        "in_c.txt": "Sure!\n" + fenced(IN_C, "c"),
        "bare.txt": PYTHON,
        # As ever: a text that has fences in its strings is code.
        "code.py": f'"""Made of:\n{fenced(wrong)}"""\n{PYTHON}',
    }
    paths = [write(name, text) for name, text in answers.items()]
    verdicts = judge_many(problem, paths, ("--correctness-only",))
    for name, verdict in zip(answers, verdicts):
        assert verdict["outcome"] == "correct", (name, verdict)
        taken = name not in ("bare.txt", "code.py")
        assert ("source" in verdict["toolchain"]) == taken, (name, verdict)
    languages = [verdict["candidate"]["language"] for verdict in verdicts]
    assert languages == 4 * ["python"] + 2 * ["cpp"] + ["c"] + 2 * ["python"]
    # What stood in fences is the source, whatever stood around it.
    assert len({verdict["candidate"]["hash"] for verdict in verdicts[1:4]}) == 1


def test_the_card_and_errors_say_what_became_of_an_answer(assay, write, problem):
    answer = write("a.md", "Here:\n" + fenced(PYTHON, "python"))
    run = assay("judge", problem, answer, "--correctness-only")
    assert run.code == GOOD and "5 lines, taken out of a model's answer" in run.out, run
    run = assay("judge", problem, write("b.md", "It cannot be done."), "--correctness-only")
    assert run.code == USAGE and "b.md: The answer has no code." in run.err, run
    run = assay("judge", problem, write("c.json", "{}"), "--correctness-only")
    assert run.code == USAGE and "in .txt or .md if it is a model's answer" in run.err, run
    run = assay("judge", problem, write("d.py", fenced("x = 1\n")), "--correctness-only")
    assert run.code == BUILD_FAILED and "it reads like a model's answer" in run.out, run


# A binding whose operator is in a header, and modules that are imported in each way.
BINDING = """#include <torch/extension.h>
#include "twice.h"
at::Tensor doubled(at::Tensor x) { return twice(torch::relu(x)); }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("doubled", &doubled); }
"""
EXTENSION = {
    "csrc/bind.cpp": BINDING,
    "csrc/twice.h": "#pragma once\ninline at::Tensor twice(at::Tensor x) { return x * 2; }\n",
    "ops/__init__.py": "from .scale import by\n",
    "ops/scale.py": "def by(x):\n    return x * 1\n",
    "plain.py": "def plain(x):\n    return x + 0\n",
    "factor.txt": "1.0",
    "model.py": """import os
import torch
from torch.utils.cpp_extension import load
from .ops import by
from plain import plain

HERE = os.path.dirname(os.path.abspath(__file__))
EXTENSION = load(name="doubled", sources=[os.path.join(HERE, "csrc", "bind.cpp")])
FACTOR = float(open("factor.txt").read())

class ModelNew(torch.nn.Module):
    def forward(self, x):
        return plain(by(EXTENSION.doubled(x))) * FACTOR
""",
}
HEADER = {
    "kernel.cpp": NATIVE.replace("ASSAY_KERNEL", '#include "part/double.h"\nASSAY_KERNEL').replace(
        "2 * x.data()[i]", "doubled(x.data()[i])"
    ),
    "part/double.h": "inline float doubled(float x) { return 2 * x; }\n",
}


@pytest.fixture
def folder(tmp_path):
    def make(name, files):
        for path, content in files.items():
            place = tmp_path / name / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(content)
        return str(tmp_path / name)

    return make


def test_a_folder_is_a_candidate(judge_many, assay, folder, problem, tmp_path):
    wrong = PYTHON.replace("* 2", "* 3")
    wrong = {"candidate.py": "from impl import ModelNew\n", "impl.py": wrong}
    broken = HEADER | {"part/double.h": "inline float doubled(float x) { return y; }\n"}
    fails = {"main.py": PYTHON + "\nraise ValueError('no')\n", "other.py": ""}
    folders = [
        folder("extension", EXTENSION),
        folder("header", HEADER) + "/",
        folder("wrong", wrong),
        folder("broken", broken),
        folder("fails", fails),
    ]
    verdicts = judge_many(problem, folders, ("--correctness-only",))
    outcomes = [verdict["outcome"] for verdict in verdicts]
    assert outcomes == 2 * ["correct"] + ["wrong"] + 2 * ["build_failed"], verdicts
    notes = [verdict["toolchain"]["source"] for verdict in verdicts]
    assert notes[0] == "a folder of 7 files; the entry is model.py", notes
    assert "'y' was not declared" in verdicts[3]["message"], verdicts[3]
    assert "double.h" in verdicts[3]["message"], verdicts[3]
    assert "main.py line 7: ValueError: no" in verdicts[4]["message"], verdicts[4]
    # Kept as one text, which is a candidate, too.
    run = assay("judge", problem, folders[1], "--correctness-only", "--json")
    shown = assay("archive", "show", run.verdict["id"])
    kept = tmp_path / "kept.txt"
    kept.write_text(shown.out[shown.out.index("assay.folder/1\n") :])
    again = assay("judge", problem, str(kept), "--correctness-only", "--json")
    assert again.verdict["outcome"] == "correct", again
    assert again.verdict["candidate"]["hash"] == run.verdict["candidate"]["hash"], again
    # In a run, by its manifest.
    lines = [{"candidate": name, "problem": "problem.py"} for name in ("header", "wrong")]
    manifest = tmp_path / "all.jsonl"
    manifest.write_text("".join(json.dumps(line) + "\n" for line in lines))
    run = assay("run", str(manifest), "--results", str(tmp_path / "results"), "--correctness-only")
    rows = (tmp_path / "results" / "verdicts.jsonl").read_text().splitlines()
    outcomes = sorted(json.loads(row)["verdict"]["outcome"] for row in rows)
    assert outcomes == ["correct", "wrong"], run


def test_a_file_that_needs_others_names_the_way(assay, write, folder, problem):
    way = "judged as their folder: assay judge PROBLEM FOLDER"
    alone = {
        "relative.py": (BUILD_FAILED, EXTENSION["model.py"]),
        "sources.py": (
            BUILD_FAILED,
            EXTENSION["model.py"].replace("from .ops import by\nfrom plain import plain\n", ""),
        ),
        "module.py": (ENVIRONMENT, "from plain import plain\n" + PYTHON),
        "header.cpp": (BUILD_FAILED, HEADER["kernel.cpp"]),
    }
    for name, (code, source) in alone.items():
        run = assay("judge", problem, write(name, source), "--correctness-only")
        said = " ".join((run.out + run.err).replace("│", " ").split())
        assert run.code == code and way in said, (name, said)
    run = assay("judge", problem, folder("none", {"a.txt": ""}), "--correctness-only")
    assert run.code == USAGE and "no file at its top has class ModelNew" in run.err, run
