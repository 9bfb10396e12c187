"""assay search: the tuner on real verdicts, going on after a kill, replays, and bad requests."""
import json
import re
import signal
import time

import pytest

from conftest import ENVIRONMENT, GOOD, NOT_FASTER, ROOT, SOFTMAX, USAGE, Assay, fits

BUDGET_ENDED = 9

# Two artifacts: one is right and far slower than PyTorch, one leaves half of the elements unscaled.
# Nothing reads UNREAD, so each is built by two variants.
SOURCE = """//! tune LIMIT = 2 1
//! tune UNREAD = 0 1
#include <assay/kernel.h>
#include <cmath>
ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<float, 2> y) {
  for (int64_t row = 0; row < x.size(0); ++row) {
    const float* from = x.data() + row * x.size(1);
    float* to = y.data() + row * x.size(1);
    const int64_t columns = x.size(1) * LIMIT / 2;
    float largest = -INFINITY, sum = 0;
    for (int64_t i = 0; i < x.size(1); ++i) largest = from[i] > largest ? from[i] : largest;
    for (int again = 0; again < 20; ++again) {  // so slow that noise makes no finalist of it
      sum = 0;
      for (int64_t i = 0; i < x.size(1); ++i)
        sum += to[i] = std::exp(static_cast<long double>(from[i] - largest));
    }
    for (int64_t i = 0; i < columns; ++i) to[i] /= sum;
  }
}
"""


def records(assay):
    """All but those which say every ten seconds that a search runs."""
    run = assay("archive", "export", "-")
    assert run.code == GOOD, run
    lines = [json.loads(line) for line in run.out.splitlines()]
    return [line for line in lines if not line.get("result", {}).get("alive")]


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """A search of all variants, killed once and gone on with: assay, its last run, its events."""
    assay = Assay(tmp_path_factory.mktemp("search"))
    source = assay.home / "kernel.cpp"
    source.write_text(SOURCE)
    arguments = ["--size", "tiny", "--set", "ROWS=8", "--from", source, "--budget", "evals=12"]
    arguments += ["--seed", "3", "--finalists", "1", "--verdict-seconds", "1", "-q"]
    process = assay.start("search", SOFTMAX, *arguments, "--jsonl")
    assert json.loads(process.stdout.readline())["event"] == "begun"
    archive = assay.home / "data" / "assay" / "archive.sqlite"
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if any(line["kind"] == "step" for line in records(assay)):
            break
    process.send_signal(signal.SIGKILL)
    process.wait()
    run = assay("search", "--resume", "--jsonl", "-q", "--archive", archive)
    return assay, run, [json.loads(line) for line in run.out.splitlines()]


def test_a_killed_search_goes_on(searched):
    assay, run, events = searched
    assert run.code in (GOOD, NOT_FASTER, BUDGET_ENDED), run
    for event in events:
        fits(event, "search")
    assert events[0]["event"] == "resumed" and events[-1]["event"] == "ended", events
    kinds = [line["kind"] for line in records(assay)]
    assert kinds[0] == "reference" and "softmax" in records(assay)[0]["text"]
    every = [line for line in records(assay) if line["kind"] == "result"]
    lost = [line["result"]["cost"]["evaluations"] for line in every if line["result"].get("lost")]
    results = [line for line in every if not line["result"].get("lost")]
    assert len({line["name"] for line in results}) == len(results)
    duplicates = [line for line in results if "duplicate_of" in line["result"]]
    assert len(duplicates) == events[-1]["outcomes"]["duplicate"] == 2, events
    assert kinds.count("verdict") == len(results) - len(duplicates)
    # All four variants were in hand at the kill; one of them at the worker.
    assert len(lost) <= 4 and sum(lost) == min(len(lost), 1), lost
    judged = len(results) - len(duplicates)
    assert events[-1]["spent"]["evaluations"] == judged + sum(lost) <= 12
    assert events[-1]["outcomes"].get("wrong") == 1, events
    for line in records(assay):
        fits(line, "archive")
    # The source that it began from, which nobody judged as it stands, and all others.
    begun = [line for line in records(assay) if line["kind"] == "search"]
    assert [line["text"] for line in begun] == [SOURCE]
    texts = {line["content"] for line in records(assay) if line["kind"] == "candidate"}
    steps = [line for line in records(assay) if line["kind"] == "step"]
    assert all("text" in line or line["source"] in texts for line in steps)
    assert assay("archive", "verify").code == GOOD


def test_its_lineage_is_shown(searched):
    assay, _, events = searched
    shown = assay("archive", "show", events[0]["search"], "--tree")
    assert shown.code == GOOD, shown
    assert "judge/0  seed  LIMIT=2 UNREAD=0" in shown.out, shown
    assert re.search(r"LIMIT=1 UNREAD=\d  wrong", shown.out), shown
    assert events[0]["search"] in assay("archive", "show", events[0]["search"]).out


def test_a_search_that_has_ended_judges_nothing_again(searched):
    assay, run, _ = searched
    before = len(records(assay))
    again = assay("search", "--resume", "-q")
    assert again.code == run.code, again
    assert len(records(assay)) == before
    assert "outcomes:" in again.out and "wrong 1" in again.out, again


def test_it_decides_the_same_when_it_is_replayed(searched):
    assay, _, events = searched
    before = len(records(assay))
    run = assay("search", "--replay", "--jsonl")
    event = json.loads(run.out)
    fits(event, "search")
    assert run.code == GOOD and "difference" not in event and event["next"] == "", run
    assert event["search"] == events[0]["search"] and event["same"] == event["records"], event
    assert len(records(assay)) == before
    # Another policy on the same verdicts: nothing is judged.
    archive = assay.home / "data" / "assay" / "archive.sqlite"
    again = assay("search", SOFTMAX, "--size", "tiny", "--set", "ROWS=8", "-q",
                  "--from", assay.home / "kernel.cpp",
                  "--strategy", "exhaustive", "--finalists", "1", "--verdicts", archive)
    assert again.code == searched[1].code and "wrong 1" in again.out, again
    assert len(records(assay)) == before


PROGRAM = """#!/bin/sh
case "$(cat)" in
*"Do not write code yet"*) echo "Scale each row by one reciprocal, way $((ASSAY_SEED % 5))." ;;
*) echo '```cpp'; cat "$(dirname "$0")/kernel$((ASSAY_SEED % 3)).cpp"; echo '```' ;;
esac
"""


EVOLVES = ["--size", "tiny", "--strategy", "evolve", "--seed", "1", "--width", "1", "--askers", "1"]
EVOLVES += ["--budget", "evals=5", "--finalists", "1", "--verdict-seconds", "6", "--jsonl", "-q"]


@pytest.fixture(scope="module")
def evolved(tmp_path_factory):
    """A search by a program's ideas and kernels: assay, its events, the transcript."""
    assay = Assay(tmp_path_factory.mktemp("evolved"))
    kernels = ROOT / "kernels" / "softmax"
    (assay.home / "kernel0.cpp").write_text(SOURCE)
    naive = (kernels / "naive.cpp").read_text()
    (assay.home / "kernel1.cpp").write_text(f"//! tune WAY = 1 2\n{naive}")
    (assay.home / "kernel2.cpp").write_text((kernels / "off_by_one.cpp").read_text())
    program, transcript = assay.home / "answer.sh", assay.home / "answers.jsonl"
    program.write_text(PROGRAM)
    proposer = ["--proposer", f"command:sh {program}", "--record", transcript]
    run = assay("search", SOFTMAX, *EVOLVES, *proposer)
    assert run.code in (GOOD, NOT_FASTER, BUDGET_ENDED), run
    return assay, [json.loads(line) for line in run.out.splitlines()], transcript


def test_a_program_evolves_kernels_by_ideas(evolved):
    assay, events, _ = evolved
    results = [event for event in events if event["event"] == "result"]
    operations = {event["operation"] for event in results if event["kind"] != "confirm"}
    assert {"idea", "realise", "tune"} < operations, operations
    realised = [event for event in results if event["operation"] == "realise"]
    assert all("one reciprocal" in event["note"] for event in realised), realised
    prompts = [line["step"]["prompt"]["text"] for line in records(assay)
               if line["kind"] == "step" and line["step"]["kind"] == "propose"]
    assert any("# Idea to realise" in prompt and "one reciprocal" in prompt for prompt in prompts)
    replayed = assay("search", "--replay")
    assert replayed.code == GOOD and "is the same" in replayed.out, replayed


@pytest.mark.thorough
def test_answers_and_verdicts_of_records_give_the_same_table(evolved):
    assay, events, transcript = evolved
    archive = assay.home / "data" / "assay" / "archive.sqlite"
    recorded = ["--proposer", f"replay:{transcript}", "--verdicts", archive]
    again = assay("search", SOFTMAX, *EVOLVES, *recorded)
    outcomes = json.loads(again.out.splitlines()[-1])["outcomes"]
    # Nothing is built again: a new text that had built to a known program has no verdict recorded.
    outcomes["duplicate"] += outcomes.pop("error", 0)
    assert outcomes == events[-1]["outcomes"], again


@pytest.mark.thorough
def test_a_proposer_is_asked_and_a_bad_answer_is_data(assay, write):
    program = write("answer", "#!/bin/sh\ncat > /dev/null\necho 'I would use tiles.'\n")
    arguments = ["--size", "tiny", "--strategy", "refine", "--chains", "1", "--turns", "2", "-q"]
    run = assay("search", SOFTMAX, *arguments, "--proposer", f"command:sh {program}")
    assert run.code == NOT_FASTER and "no candidate was judged" in run.out, run
    kinds = [line["kind"] for line in records(assay)]
    assert kinds == ["reference", "search", "step", "result", "step", "result"], kinds
    assert "tiles" in records(assay)[3]["result"]["answer"]["text"]
    assert "no code" in records(assay)[4]["step"]["prompt"]["text"]


def test_bad_requests_say_what_to_do(searched, write, assay):
    plain = write("plain.cpp", re.sub(r"//! tune (\w+) = (\d).*", r"#define \1 \2", SOURCE))
    tunable = write("tunable.cpp", SOURCE)
    for arguments, words in (
        ([], "name a problem"),
        ([SOFTMAX], "--from is missing"),
        ([SOFTMAX, "--from", "missing.cpp"], "missing.cpp"),
        ([SOFTMAX, "--from", plain], "leaves nothing open"),
        ([SOFTMAX, "--from", tunable, "--budget", "60"], "evals=60,usd=2"),
        ([SOFTMAX, "--from", tunable, "--strategy", "magic"], "--strategy magic"),
        ([SOFTMAX, "--proposer", "magic"], "magic"),
        ([SOFTMAX, "--from", tunable, "--proposer", "command:cat"], "--from is of the tuner"),
        ([SOFTMAX, "--resume"], "leave the problem out"),
        (["--resume"], "no search"),
        (["--steer", "pray", "x"], "--steer pray"),
        (["--resume", "--budget", "evals=9"], "--budget: it was fixed"),
        ([SOFTMAX, "--from", tunable, "--out", "missing/best.cpp"], "--out missing/best.cpp"),
        ([SOFTMAX, "--replay"], "leave the problem out"),
        (["--replay"], "archive"),
        ([SOFTMAX, "--from", tunable, "--verdicts", "missing"], "no archive missing"),
    ):
        run = assay("search", *arguments)
        assert run.code == USAGE and words in run.err, run
    assert not (assay.home / "data").exists()
    other, _, events = searched
    run = other("search", "--steer", "inject", "tiles")
    assert run.code == USAGE and "heeds no wishes" in run.err, run
    run = other("search", "--resume", "0123456789ab")
    assert run.code == USAGE and "no search 0123456789ab" in run.err, run
    archive = assay.home / "folder"
    archive.mkdir()
    run = assay("search", SOFTMAX, "--from", tunable, "--archive", archive)
    assert run.code in (USAGE, ENVIRONMENT) and "choose another file" in run.err, run
