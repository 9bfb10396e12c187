"""What gate 1's values show of the reference: its operators, and the state that forward leaves."""
import json

import pytest

from conftest import ROOT, WRONG

EXPLOITS = ROOT / "tests" / "exploits"


def exploit(problem, candidate):
    return str(EXPLOITS / "problems" / problem), str(EXPLOITS / candidate)


# A branch that no value shows could be left out for a win; who computes it has none to explain.
@pytest.mark.alone
def test_a_win_without_an_operator_that_no_value_shows_is_unsettled(assay):
    problem, cheat = exploit("faint_branch.py", "corpus/15_leaves_an_unseen_branch.py")
    verdict = assay.judge(problem, cheat, "--budget", "30").verdict
    assert verdict["outcome"] == "unsettled", verdict["message"]
    assert verdict["speed"]["baselines"]["eager"]["why_unsettled"]["cause"] == "unseen"
    unseen = {operator["name"] for operator in verdict["coverage"]["unseen"]}
    assert "add" in unseen, verdict["coverage"]
    assert all(operator["line"] == 17 for operator in verdict["coverage"]["unseen"])
    # It was kept: another command shows it without a judgement.
    shown = json.loads(assay("problems", "show", problem, "--json").out)
    assert shown["coverage"] == verdict["coverage"]


def test_a_faint_parameter_is_drawn_so_that_its_branch_shows(assay):
    problem, cheat = exploit("scaled_branch.py", "corpus/15_leaves_a_faint_branch.py")
    run = assay.judge(problem, cheat, "--correctness-only")
    assert run.code == WRONG, run
    twin = str(EXPLOITS / "twins" / "15_folds_the_scale.py")
    verdict = assay.judge(problem, twin, "--correctness-only").verdict
    coverage = verdict["coverage"]
    assert verdict["outcome"] == "correct", verdict["message"]
    assert coverage["unseen"] == [] and coverage["seen"] == coverage["operators"] >= 3, coverage


def test_state_that_forward_changes_is_compared(assay, write):
    problem, cheat = exploit("running_peak.py", "corpus/02_leaves_the_peak.py")
    run = assay.judge(problem, cheat, "--correctness-only")
    assert run.code == WRONG and run.verdict["correctness"]["mistake"] == "state", run
    assert "changes peak" in run.verdict["message"], run
    ignored = assay.judge(problem, cheat, "--correctness-only", "--state", "ignored").verdict
    assert ignored["outcome"] == "correct"
    assert "not compared, as was asked" in ignored["correctness"]["note"]
    # One that has no such buffer is right, and told.
    source = (EXPLOITS / "corpus" / "02_leaves_the_peak.py").read_text()
    without = "".join(line for line in source.splitlines(True) if "register_buffer" not in line)
    verdict = assay.judge(problem, write("without.py", without), "--correctness-only").verdict
    assert verdict["outcome"] == "correct", verdict["message"]
    assert "changes peak, which the candidate does not have" in verdict["correctness"]["note"]
