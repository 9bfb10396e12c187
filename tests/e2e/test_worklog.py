"""assay worklog: a match from its prediction to its marks, on the real judge."""

import csv
import json
import re
import shutil

import jsonschema
import pytest

from conftest import GOOD, ROOT, USAGE, WRONG

MISSING = 1
KERNEL = ROOT / "kernels" / "softmax" / "fused.cpp"
NAIVE = ROOT / "kernels" / "softmax" / "naive.cpp"
TRANSCRIPT = ROOT / "tests" / "transcripts" / "masked_softmax_scale.sample.jsonl"


def schema(name):
    return json.loads((ROOT / "docs" / f"{name}.schema.json").read_text())


def facts(folder):
    lines = (folder / "facts.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def begin(assay, problem="softmax"):
    run = assay("worklog", "init", problem, "--size", "tiny", "--budget", "1", "--author", "A")
    assert run.code == GOOD, run
    return assay.home


def predict(assay):
    run = assay("worklog", "predict", "--regime", "memory", "--ratio", "2", "--because", "fused")
    assert run.code == GOOD, run


def test_a_match(assay, write):
    folder = begin(assay)
    attempt = ["worklog", "attempt", str(KERNEL), "-q", "--why"]
    run = assay(*attempt, "fuses 3 passes")
    assert run.code == USAGE and "predict first, then measure" in run.err, run
    predict(assay)
    run = assay(*attempt, " ")
    assert run.code == USAGE and "a version without a reason is refused" in run.err, run
    run = assay(*attempt, "v1 fuses the 3 passes", "--mechanism", "fusion")
    assert run.code == GOOD and "v1: compiled, correct" in run.out, run
    run = assay(
        *["worklog", "model", "--prompt", write("asked.md", "Write a kernel.\n")],
        *["--answer", write("answer.md", "I cannot.\n"), "--provenance", "a chat"],
    )
    assert run.code == GOOD and "answer 1 has no candidate" in run.out, run
    for line in facts(folder):
        jsonschema.validate(line, schema("fact"))
        document = "match" if line["kind"] == "note" else "verdict"
        jsonschema.validate(json.loads(line["content"]), schema(document))

    run = assay("worklog", "check")
    assert run.code == MISSING and "assay worklog stuck model" in run.out, run
    run = assay("worklog", "certificate")
    assert run.code == USAGE and "not complete" in run.err, run
    assay("worklog", "stuck", "hand", "on nothing")
    assay("worklog", "stuck", "model", "it gave no code")
    write("head-to-head.md", "The model fails to write a kernel at all, so v1 wins: " + "2 " * 20)
    assert assay("worklog", "render").code == GOOD
    run = assay("worklog", "check")
    assert run.code == GOOD and "complete: 1 version" in run.out, run
    run = assay("worklog", "grade", "--mark", "depth=12", "--mentor", "M", "--csv", "-")
    [row] = csv.DictReader(run.out.splitlines())
    assert run.code == GOOD and (row["depth"], row["depth by evidence"]) == ("12", "20"), run
    assert (row["honesty"], row["honesty by evidence"]) == ("not marked", "10"), run
    assert row["total"] == "not marked", run
    assert (row["of"], row["suspicious"]) == ("100", "0"), run
    run = assay("worklog", "certificate")
    assert run.code == GOOD and (folder / "certificate.pdf").read_bytes()[:5] == b"%PDF-", run
    judged_besides(assay, folder)
    tampering(assay, folder)


def judged_besides(assay, folder):
    """A version against another, and a judgement that the author made to learn something."""
    run = assay("worklog", "attempt", str(NAIVE), "-q", "--why", "v1 without its fusion: 3 passes")
    assert run.code == GOOD, run
    run = assay("worklog", "duel", "v1", "v2", "-q")
    assert run.code == GOOD and "v1 against v2: " in run.out, run
    softmax = ["judge", "softmax", str(KERNEL), "--size", "tiny"]
    run = assay(*softmax, "--correctness-only", "--json")
    verdict = json.loads(run.out)["id"]
    run = assay("worklog", "check")
    assert run.code == WRONG and f"assay worklog also {verdict} --why" in run.out, run
    run = assay("worklog", "also", verdict, "--why", "is it right once more?")
    assert run.code == GOOD and f"taken in: {verdict}: v1: correct" in run.out, run
    for line in facts(folder):
        if line["kind"] == "note":
            jsonschema.validate(json.loads(line["content"]), schema("match"))
    assert assay("worklog", "render").code == GOOD
    run = assay("worklog", "check")
    assert run.code == GOOD and "1 verdict judged besides" in run.out, run
    run = assay("worklog", "status")
    assert run.code == GOOD and "nothing is missing" in run.out, run
    assert "is it right once more?" in (folder / "worklog.md").read_text()


def tampering(assay, folder):
    """What is taken out of the words, edited, or judged elsewhere."""
    words = (folder / "worklog.toml").read_text()
    report = (folder / "worklog.md").read_text()

    def told(text):
        run = assay("worklog", "check")
        assert run.code == WRONG and text in run.out, run
        grade = assay("worklog", "grade", "--csv", "-")
        [row] = csv.DictReader(grade.out.splitlines())
        assert row["honesty"] == "0" and row["suspicious"] != "0", grade

    without = re.sub(r"\n\[\[version\]\].*?(?=\n\[\[|\Z)", "", words, count=1, flags=re.S)
    (folder / "worklog.toml").write_text(without)
    told("v1 was attempted")
    (folder / "worklog.toml").write_text(words.replace("ratio = 2", "ratio = 3"))
    told("worklog.toml predicts 3.00x; sealed was 2.00x")
    (folder / "worklog.toml").write_text(words)
    (folder / "worklog.md").write_text(report.replace("2.00x", "9.99x"))
    told("worklog.md was edited: line")
    (folder / "worklog.md").write_text(report)
    page = (folder / "worklog.html").read_text()
    (folder / "worklog.html").write_text(page.replace("2.00x", "9.99x"))
    told("worklog.html was edited")
    (folder / "worklog.html").write_text(page)
    lines = (folder / "facts.jsonl").read_text().splitlines(keepends=True)
    (folder / "facts.jsonl").write_text("".join(lines[:2] + lines[5:]))
    run = assay("worklog", "check")
    assert run.code == WRONG and "facts.jsonl lacked 3 facts of the archive's" in run.out, run
    assert assay("worklog", "check").code == GOOD
    (folder / "facts.jsonl").write_text("".join(lines).replace(r"\"ratio\":2.0", r"\"ratio\":3.0"))
    for command in ("check", "grade"):
        run = assay("worklog", command)
        assert run.code == USAGE and "line 2: the fact was changed" in run.err, run


def test_bad_input_is_told_and_loses_nothing(assay, write):
    folder = assay.home / "match"
    place = ["--in", str(folder)]
    run = assay("worklog", "check", *place)
    assert run.code == USAGE and "assay worklog init" in run.err, run
    assert assay("worklog", "init", "softmax", "--size", "tiny", *place).code == GOOD
    run = assay("worklog", "init", "softmax", *place)
    assert run.code == USAGE and "has a worklog" in run.err, run
    predicted = ["worklog", "predict", "--regime", "memory", "--ratio", "2", "--because", "x"]
    assert assay(*predicted, *place).code == GOOD
    before = (folder / "facts.jsonl").read_text()
    attempt = ["worklog", "attempt", *place, "--why", "why"]
    for name, content, text in [
        ("latin.cpp", b"// caf\xe9 ASSAY_KERNEL\n", "is not UTF-8"),
        ("long.cpp", b"//" + b"x" * (5 << 20), "larger than the limit"),
        ("none.txt", b"x", "none.txt"),
    ]:
        run = assay(*attempt, write(name, content))
        assert run.code == USAGE and text in run.err, run
        assert run.err.count("\n") == 1, run
    # The archive was moved: nothing is recorded in another one.
    archive = assay.home / "data" / "assay" / "archive.sqlite"
    moved = assay.home / "moved.sqlite"
    shutil.move(archive, moved)
    for suffix in ("-wal", "-shm"):
        if (side := archive.with_name(archive.name + suffix)).exists():
            shutil.move(side, moved.with_name(moved.name + suffix))
    run = assay(*attempt, str(KERNEL))
    assert run.code == USAGE and "--archive FILE" in run.err, run
    assert assay("worklog", "check", *place).code == MISSING
    assert (folder / "facts.jsonl").read_text() == before
    (folder / "worklog.toml").write_text("<<<<<<< HEAD\n")
    run = assay("worklog", "check", *place)
    assert run.code == USAGE and "line 1: a merge left a conflict" in run.err, run


@pytest.mark.thorough
def test_a_transcript_keeps_its_prompts(assay):
    folder = begin(assay, "masked_softmax_scale")
    predict(assay)
    run = assay("worklog", "model", "-q", "--proposer", f"replay:{TRANSCRIPT}", "--attempts", "2")
    assert run.code == GOOD and "series 1: 2 of 2 answers correct" in run.out, run
    notes = [json.loads(line["content"]) for line in facts(folder) if line["kind"] == "note"]
    recorded = [json.loads(line) for line in TRANSCRIPT.read_text().splitlines()]
    asked = {line["prompt"] for line in recorded}
    assert [note["prompt"] for note in notes if note["event"] == "series"] == list(asked)
    answers = [note["text"] for note in notes if note["event"] == "answered"]
    by_key = {line["key"]: line["answer"] for line in recorded}
    assert answers == [by_key["propose/0/0"], by_key["propose/1/0"]]


@pytest.mark.parametrize(("name", "versions"), [("worklog", 6), ("match", 12)])
def test_an_example_is_complete(assay, name, versions):
    run = assay("worklog", "check", "--in", ROOT / "examples" / name)
    assert run.code == GOOD and f"complete: {versions} versions" in run.out, run


def test_a_class_with_broken_worklogs_is_graded(assay, tmp_path):
    for name in ("ada", "bob", "cheat"):
        shutil.copytree(ROOT / "examples" / "worklog", tmp_path / name)
    facts_file = tmp_path / "cheat" / "facts.jsonl"
    facts_file.write_text(facts_file.read_text().replace("v1", "v9", 1))
    folders = [tmp_path / name for name in ("ada", "cheat", "none", "bob")]
    files = ["--csv", tmp_path / "grades.csv", "--page", tmp_path / "class.html"]
    run = assay("worklog", "grade", *folders, *files)
    assert run.code == WRONG and "4 worklogs: 2 not graded" in run.out, run
    assert len(run.out.splitlines()) == 6, run.out
    rows = list(csv.DictReader((tmp_path / "grades.csv").read_text().splitlines()))
    totals = [row["total"] for row in rows]
    assert totals == ["not marked", "not graded", "not graded", "not marked"], rows
    assert "the same worklog, by its id, as " + str(folders[3]) in rows[0]["remarks"], rows
    page = (tmp_path / "class.html").read_text()
    assert "not graded" in page and str(folders[3]) in page


def test_a_lift_reaches_check_and_certificate(assay, tmp_path):
    folder = tmp_path / "match"
    shutil.copytree(ROOT / "examples" / "worklog", folder)
    place = ["--in", folder]
    report = folder / "worklog.md"
    report.write_text(report.read_text().replace("memory", "memories", 1))
    assert assay("worklog", "check", *place).code == WRONG
    run = assay("worklog", "grade", *place, "--mark", "honesty=9")
    assert run.code == GOOD and "honesty stays 0 until" in run.out, run
    run = assay("worklog", "certificate", *place)
    assert run.code == USAGE and "--lift WHY" in run.err, run
    lift = ["--lift", "a typo of mine", "--mentor", "M"]
    told = [*lift, "--note", "well done", "--sheet", folder / "s.md"]
    run = assay("worklog", "grade", *place, *told)
    assert run.code == GOOD and "Honesty: 9" in run.out, run
    assert "> well done" in (folder / "s.md").read_text()
    run = assay("worklog", "check", *place)
    assert run.code == GOOD and "lifted by M: a typo of mine" in run.out, run
    assert assay("worklog", "certificate", *place).code == GOOD


def test_suggestions_name_the_tier(assay):
    run = assay("worklog", "init", "--suggest", "--tier", "1", "--mechanism", "reduction")
    assert run.code == GOOD and "softmax" in run.out and "fusion " not in run.out, run
    run = assay("worklog", "init", "--suggest", "--mechanism", "luck")
    assert run.code == USAGE, run


def test_roofline_needs_a_verdict(assay):
    run = assay("roofline", "softmax", "3f2a9c01d4e7")
    assert run.code == USAGE and "there is no verdict 3f2a9c01d4e7" in run.err, run
