"""Garbage candidates: each gets a verdict, none ends the judge or spoils another's verdict.

Ten of a fresh seed run here, and thirty by turns; scripts/garbage runs a thousand, and tells what
must hold.
"""
import pathlib
import random

import campaign
import pytest

from conftest import BUILD_FAILED, DIED, SOFTMAX, fits


@pytest.mark.parametrize("count", [10, pytest.param(30, marks=pytest.mark.thorough)])
def test_garbage_candidates_get_a_verdict_each_and_leave_nothing(count):
    seed = random.SystemRandom().getrandbits(32)
    records = list(campaign.run(list(range(count)), seed))
    assert len(records) == count
    wrong = [record for record in records if record["faults"]]
    assert not wrong, f"scripts/garbage --count {count} --seed {seed}: {wrong}"


# A judge that breaks its promises, to show that the campaign would see it.
BROKEN = """#!/bin/sh
setsid sleep 8 >/dev/null 2>&1 &
touch "$TMPDIR/forgotten"
echo nonsense
exit 70
"""


def test_the_campaign_sees_a_broken_judge(write, monkeypatch):
    judge = pathlib.Path(write("judge", BROKEN))
    judge.chmod(0o755)
    monkeypatch.setattr(campaign, "ASSAY", judge)
    monkeypatch.setattr(campaign, "LEFTOVER_SECONDS_MAX", 1)
    records = list(campaign.run([0, 1], seed=1))
    assert [record["faults"][0] for record in records] == ["no verdict", "no verdict"]
    faults = "\n".join(records[-1]["faults"])
    for seen in ("process sleep 8", "forgotten", "not an event", "0 verdicts on 3", "exit code 70"):
        assert seen in faults


HEAD = "#include <assay/kernel.h>\n#include <cstdint>\n#include <unistd.h>\n"
ENTRY = "ASSAY_KERNEL(assay::Tensor<const float, 2>, assay::Tensor<float, 2>) {}\n"
FORGED = """
struct Frame { uint32_t magic, kind; uint64_t args[8]; };
__attribute__((constructor)) static void forge() {
  Frame frame{0x59415341, 102, {FAILURE}};
  (void)!write(3, &frame, sizeof frame);
}
"""


# A failure that would be the machine's (exit code 8) or the problem's (2) ended the whole call, and
# with it the verdicts on everybody else's candidates.
@pytest.mark.parametrize("failure", [0, 1, 8, 25, 40, 2**63])
def test_a_candidate_cannot_blame_the_machine_or_the_problem(assay, write, failure):
    forged = write("forged.cpp", HEAD + FORGED.replace("FAILURE", f"{failure}ull") + ENTRY)
    run = assay.judge(SOFTMAX, forged, "--size", "tiny")
    assert run.code == DIED, run
    assert run.verdict["outcome"] == "crashed"
    assert "gave up" in run.verdict["message"]
    fits(run.verdict, "verdict")


def test_a_candidate_that_forges_a_silent_failure_of_its_own_gets_a_message(assay, write):
    forged = write("forged.cpp", HEAD + FORGED.replace("FAILURE", "20") + ENTRY)
    run = assay.judge(SOFTMAX, forged, "--size", "tiny")
    assert run.code == BUILD_FAILED, run
    assert run.verdict["message"] == "it could not be loaded, and its process did not say why"


PYTHON = {
    "ends its process": ("import os\nos._exit(0)\n", "exit code 0"),
    "kills its process": ("import os\nos.abort()\n", "signal 6"),
    "has no words": (
        "class E(Exception):\n    def __str__(self):\n        raise E()\nraise E()\n",
        "cannot be put into words",
    ),
}


@pytest.mark.parametrize("what", PYTHON)
def test_a_python_candidate_that_says_nothing_gets_a_message(assay, write, what):
    text, expected = PYTHON[what]
    run = assay.judge(SOFTMAX, write("silent.py", text), "--size", "tiny")
    assert run.code == BUILD_FAILED, run
    assert expected in run.verdict["message"]


# A candidate may ask for a compiler; that this machine has none of that name is its own trouble.
def test_a_missing_compiler_of_the_candidates_choice_ends_no_other_verdict(assay, write, tmp_path):
    chosen = write("chosen.cpp", "//! compiler clang++\n" + HEAD + ENTRY)
    plain = write("plain.cpp", HEAD + ENTRY)
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "g++").symlink_to("/usr/bin/g++")
    asked = (chosen, plain, "--size", "tiny", "--python", "/usr/bin/python3")
    run = assay.judge(SOFTMAX, *asked, PATH=str(programs), ASSAY_BWRAP="/usr/bin/bwrap")
    outcomes = [verdict["outcome"] for verdict in run.verdict]
    assert outcomes == ["build_failed", "wrong"], run
    assert "clang++" in run.verdict[0]["message"]
