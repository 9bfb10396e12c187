"""The worked pairs that prompts show are right."""
import re

from conftest import CORRECT, ROOT

FILE_NAMES = {"cpp": "kernel.cpp", "python": "kernel.py"}


def worked_pair(form):
    """Returns the reference's class, the language of the kernel and its source."""
    text = (ROOT / "prompts" / f"example_{form}.md").read_text()
    (_, reference), (language, kernel) = re.findall(r"```(\w+)\n(.*?)```", text, re.DOTALL)
    return reference, language, kernel


def test_worked_pairs_are_right(assay, write):
    pairs = [worked_pair(form) for form in ("native", "python")]
    references = {reference for reference, _, _ in pairs}
    assert len(references) == 1
    problem = write(
        "problem.py",
        "import torch\nimport torch.nn as nn\n\n\n" + references.pop() + "\n\n"
        "ROWS = 37\nCOLUMNS = 301\n\n\n"
        "def get_inputs():\n    return [torch.randn(ROWS, COLUMNS)]\n\n\n"
        "def get_init_inputs():\n    return []\n",
    )
    kernels = [write(FILE_NAMES[language], kernel) for _, language, kernel in pairs]
    run = assay.judge(problem, *kernels, "--correctness-only", "--ragged", "ROWS=1:9",
                      "--ragged", "COLUMNS=1:70")
    assert run.code in CORRECT, run
    assert [verdict["outcome"] for verdict in run.verdict] == ["correct", "correct"]


def test_the_worked_pair_of_the_device_form_has_launch_lines():
    reference, language, kernel = worked_pair("device")
    assert language == "cuda" and reference == worked_pair("native")[0]
    assert re.search(r"^//! launch +centre ", kernel, re.MULTILINE)
