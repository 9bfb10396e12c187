"""The corpus for a GPU, as far as it can be looked at without one: headers, classes, Python that
compiles, launch lines that name what is there, and a table that is the corpus's own.
scripts/exploits --device cuda runs it on a machine that has a GPU.
"""
import collections
import json
import re
import subprocess
import sys

import pytest
import raw_results
from cases import EXPLOITS, all_cases, problem_file, read_classes
from threat_table import MARKERS, case_file, static_cells

from conftest import ROOT

sys.path.append(str(EXPLOITS / "naive"))
import device_form  # noqa: E402

CASES = all_cases("cuda")
CLASSES = read_classes()
PYTHON = [case for case in CASES if case.path.suffix == ".py"]
DEVICE = [case for case in CASES if case.path.suffix == ".cu"]


def test_every_class_of_the_corpus_has_an_exploit_and_a_twin():
    counts = collections.Counter((case.number, case.twin) for case in CASES)
    numbers = {case.number for case in CASES}
    assert numbers <= set(CLASSES)
    assert {number for number, entry in CLASSES.items() if entry.get("gpu")} <= numbers
    for number in numbers:
        assert counts[number, False] >= 1, f"class {number} has no exploit"
        assert counts[number, True] >= 1, f"class {number} has no twin"


def test_names_are_used_once_on_a_device():
    counts = collections.Counter(map(case_file, CASES))
    assert not [name for name, count in counts.items() if count > 1]


@pytest.mark.parametrize("case", CASES, ids=case_file)
def test_a_twin_is_correct_and_an_exploit_is_not_faster(case):
    path, _ = problem_file(case)
    assert path.is_file()
    if case.twin:
        assert case.expected == ["correct"]
    else:
        assert "faster" not in case.expected and "correct" not in case.expected
        assert case.naive


@pytest.mark.parametrize("case", PYTHON, ids=case_file)
def test_python_compiles(case):
    text = case.path.read_text()
    compile(text, case.name, "exec")
    assert "class ModelNew" in text


def settings_of(case):
    """The constants that are changed, by name."""
    _, sizes = problem_file(case)
    found = {name: str(value) for name, value in sizes.items()}
    return found | dict(setting.split("=", 1) for setting in case.settings)


def parameters_of(kernel, text):
    found = re.search(rf"__global__ void {kernel}\(([^)]*)\)", text)
    assert found, f"there is no kernel {kernel}"
    return [part for part in found.group(1).split(",") if part.strip()]


@pytest.mark.parametrize("case", DEVICE, ids=case_file)
def test_launch_lines_fit_the_kernels(case):
    text = case.path.read_text()
    definitions, scratches, launches, _, _ = device_form.read_lines(text)
    assert launches
    names = {name for name, _ in definitions} | {name for name, _, _ in scratches}
    problem = problem_file(case)[0].read_text()
    forward = re.search(r"def forward\(self, (.*?)\)", problem).group(1)
    names |= set(re.findall(r"(\w+): torch\.Tensor", forward))
    names |= set(re.findall(r"self\.(\w+) = nn\.Parameter", problem)) | {"out"}
    for kernel, given in launches:
        assert len(given["args"]) == len(parameters_of(kernel, text))
        assert 1 <= len(given["grid"]) <= 3 and 1 <= len(given["block"]) <= 3
        for part in given["grid"] + given["block"] + given["args"]:
            used = set(re.findall(r"(?<![.\w])[A-Za-z_]\w*", part))
            assert used <= names | {"ceil_div", "min", "max"}, f"{kernel}: {part}"
    for _, element, _ in scratches:
        assert element in device_form.ELEMENT_BYTES


def test_lines_are_read_as_the_judge_reads_them():
    text = """
//! dim      rows = x.size(0)
//! tune     BLOCK = 256 512
//! scratch  partial float[rows * 32]
//! launch fin grid=(ceil_div(rows, 8), 2) block=(32, 8) shared=4*BLOCK args=(x, min(rows, 3), 7)
"""
    definitions, scratches, launches, macros, _ = device_form.read_lines(text)
    assert definitions == [("rows", "x.size(0)"), ("BLOCK", "256")] and macros == ["BLOCK"]
    assert scratches == [("partial", "float", "rows * 32")]
    assert launches == [
        (
            "fin",
            {
                "grid": ["ceil_div(rows, 8)", "2"],
                "block": ["32", "8"],
                "shared": "4*BLOCK",
                "args": ["x", "min(rows, 3)", "7"],
            },
        )
    ]
    scope = dict(device_form.NAMES, rows=20)
    assert device_form.value_of("ceil_div(rows, 8) + 7 / 2", scope) == 6


def test_the_public_table_is_of_these_headers_and_classes():
    text = (ROOT / "docs" / "exploits.md").read_text()
    begin, end = MARKERS["cuda"]
    lines = text.split(begin)[1].split(end)[0].strip().splitlines()
    shown = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    numbers = sorted({case.number for case in CASES})
    assert [row[:4] + row[-2:] for row in shown] == [
        static_cells(CLASSES[number], CASES, "cuda") for number in numbers
    ]


def result(case, **more):
    return {
        "file": case_file(case),
        "class": case.number,
        "naive": None,
        "rule": None,
        "outcome": "wrong",
        "caught": True,
    } | more


def test_results_of_a_device_change_that_device_s_table_alone(tmp_path, monkeypatch):
    public = tmp_path / "exploits.md"
    public.write_text((ROOT / "docs" / "exploits.md").read_text())
    monkeypatch.setattr(raw_results, "PAGE", public)
    monkeypatch.setattr(raw_results, "ROOT", tmp_path)
    case = next(case for case in CASES if not case.twin and case.naive == "fooled")
    raw = tmp_path / "raw.jsonl"
    raw.write_text(json.dumps(result(case, naive={"correct": True, "speedup": 3})) + "\n")
    before = public.read_text()
    raw_results.write_document([raw])
    after = public.read_text()
    begin, end = MARKERS["cuda"]
    assert after.split(begin)[0] == before.split(begin)[0]
    assert after.split(end)[1] == before.split(end)[1]
    row = next(line for line in after.split(begin)[1].splitlines() if f"| {case.number} |" in line)
    assert "| 1/1 | 1/1 | wrong |" in row


def test_lanes_take_a_gpu_each():
    process = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "exploits"), "--device", "cuda", "--lanes", "999"],
        capture_output=True,
        text=True,
    )
    assert process.returncode == 2 and "a GPU of its own" in process.stderr
