"""The suite that comes with Assay: listed, looked at, and each problem judged against itself."""

import concurrent.futures
import json
import re
import subprocess

import pytest

from conftest import ASSAY, GOOD, ROOT, USAGE, Assay, chosen_parameters, fits

PROBLEMS = json.loads(
    subprocess.run(
        [ASSAY, "problems", "--json", "--suite", ROOT / "problems"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
)
NAMES = [problem["name"] for problem in PROBLEMS]
# Of every level and of several mechanisms; the others are judged by turns.
REPRESENTATIVES = ("softmax", "matmul", "embedding", "linear_swiglu", "mlp_mixer")


def by_turns(names):
    return [
        name if name in REPRESENTATIVES else pytest.param(name, marks=pytest.mark.thorough)
        for name in names
    ]


def own_form(problem, folder):
    """The reference itself as a candidate in Python."""
    source = (ROOT / "problems" / problem["file"]).read_text()
    candidate = folder / f"{problem['name']}.py"
    candidate.write_text(re.sub(r"\bModel\b(?=[(,:])", "ModelNew", source))
    return candidate


@pytest.fixture(scope="module")
def judged():
    """Name -> the call on a problem, of those that this session has judged."""
    return {}


def judge_against_themselves(names, folder, judged):
    """Problems at tiny against their own forms, correctness alone; two judgements at a time."""
    assay = Assay(folder)

    def judge(name):
        problem = PROBLEMS[NAMES.index(name)]
        path = ROOT / "problems" / problem["file"]
        arguments = ["--size", "tiny", "--correctness-only", "--no-save"]
        return assay.judge(path, own_form(problem, folder), *arguments)

    with concurrent.futures.ThreadPoolExecutor(2) as workers:
        judged.update(zip(names, workers.map(judge, names)))


def test_there_are_enough_problems_of_each_level():
    levels = [problem["level"] for problem in PROBLEMS]
    assert len(PROBLEMS) >= 46 and len(set(NAMES)) == len(NAMES)
    assert levels.count(1) >= 24 and levels.count(2) >= 16 and levels.count(3) >= 6


def test_representatives_are_of_the_suite():
    levels = {PROBLEMS[NAMES.index(name)]["level"] for name in REPRESENTATIVES}
    assert levels == {1, 2, 3}


@pytest.mark.parametrize("name", by_turns(NAMES))
def test_each_problem_is_correct_against_itself(judged, tmp_path, request, name):
    if name not in judged:
        judge_against_themselves(chosen_parameters(request, "name"), tmp_path, judged)
    run = judged[name]
    assert run.code == GOOD, run  # correct; its speed was not asked for
    assert run.verdict["correctness"]["passed"], run
    assert run.verdict["work"]["operations_from"] != "unknown", run
    passed = [draw for draw in run.verdict["correctness"]["draws"] if draw["result"] == "passed"]
    assert len(passed) >= 3, run  # the ordinary draws at least


@pytest.mark.thorough
@pytest.mark.parametrize("name", NAMES)
def test_no_problem_is_faster_than_itself(assay, tmp_path, name):
    problem = PROBLEMS[NAMES.index(name)]
    candidate = own_form(problem, tmp_path)
    path = ROOT / "problems" / problem["file"]
    run = assay.judge(path, candidate, "--size", "tiny", "--budget", "20")
    assert run.verdict["correctness"]["passed"], run
    assert run.verdict["outcome"] != "faster", run


def test_the_list_is_filtered_and_printed(assay):
    run = assay("problems")
    assert run.code == 0 and run.out.count("\n") >= len(PROBLEMS) + 3, run
    run = assay("problems", "--level", "3")
    assert "mlp_mixer" in run.out and "softmax" not in run.out, run
    run = assay("problems", "--mechanism", "scan", "--names")
    names = ["cumulative_sum", "sample_tokens", "selective_scan_block", "gated_recurrent"]
    assert run.out.split() == names, run
    run = assay("problems", "--mechanism", "magic")
    assert run.code == USAGE and "no problem matches" in run.err, run


def test_a_large_problem_is_shown_without_being_run(assay):
    run = assay("problems", "show", "softmax", "--size", "large", "--json")
    shown = json.loads(run.out)
    fits(shown, "problem")
    assert shown["inputs"] == ["x float32[65536, 32768]"], run
    assert shown["bytes"] == 2 * 4 * 65536 * 32768, run
    assert shown["operations"] == 5 * 65536 * 32768, run
    assert shown["bound_ns"] is None and shown["wall_ns"] is None, run


def test_a_profile_says_where_the_time_goes(assay):
    run = assay("problems", "show", "matmul", "--size", "tiny", "--profile", "--json")
    shown = json.loads(run.out)
    fits(shown, "problem")
    assert shown["operations"] == 2 * 128**3, run
    hottest = shown["operators"][0]
    assert hottest["name"] == "mm" and hottest["time_share"] > 0.3, run
    assert hottest["headroom"] == pytest.approx(1 / (1 - hottest["time_share"])), run


def test_bad_suites_are_refused_with_file_and_line(assay, write, tmp_path):
    problem = "[[problem]]\nname = 'p'\nfile = 'p.py'\n"
    write("p.py", "ROWS = 2\n")
    for text, said in (
        (problem + "levle = 1\n", "line 4: unknown key 'levle' in [[problem]]; did you mean"),
        (problem + problem, "a second problem is named 'p'"),
        ("[[problem]]\nname = 'q'\nfile = 'q.py'\n", "problem 'q': there is no file"),
        ("[[problem]\n", "not TOML"),
    ):
        write("suite.toml", text)
        run = assay("problems", "--suite", tmp_path)
        assert run.code == USAGE and said in run.err, run


def test_flops_that_name_no_constant_are_told(assay, write):
    write("suite.toml", "[[problem]]\nname = 'p'\nfile = 'p.py'\nflops = '2 * ROW'\n")
    source = (ROOT / "problems" / "level1" / "softmax.py").read_text()
    run = assay("problems", "show", write("p.py", source))
    assert run.code == USAGE and "the problem has no number ROW" in run.err, run


def test_draws_that_cannot_be_skipped_are_told(assay, write):
    write("suite.toml", "[[problem]]\nname = 'p'\nfile = 'p.py'\nskip_draws = ['tise']\n")
    source = (ROOT / "problems" / "level1" / "softmax.py").read_text()
    candidate = ROOT / "kernels" / "softmax" / "naive.cpp"
    run = assay.judge(write("p.py", source), candidate, "--set", "ROWS=4")
    assert run.code == USAGE and "skip_draws has 'tise'" in run.err, run
