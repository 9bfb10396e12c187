"""assay archive: what judge and run record, and how it is found, checked and exported."""
import hashlib
import json
import re

import pytest

from conftest import ENVIRONMENT, GOOD, ROOT, SOFTMAX, USAGE, WRONG, Assay, fits

KERNELS = ROOT / "kernels" / "softmax"
SHORT = ["--size", "tiny", "--correctness-only", "-q"]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Two candidates judged, one of them in a run, too: with the archive's file."""
    assay = Assay(tmp_path_factory.mktemp("archive"))
    judged = assay("judge", SOFTMAX, KERNELS / "fused.cpp", KERNELS / "off_by_one.cpp", *SHORT)
    assert judged.code == WRONG, judged
    archive = assay.home / "data" / "assay" / "archive.sqlite"
    copy = assay.home / "softmax" / "fused.cpp"
    copy.parent.mkdir()
    copy.write_bytes((KERNELS / "fused.cpp").read_bytes())
    run = assay("run", copy, "--devices", "cpu", "--archive", archive, *SHORT)
    assert run.code == GOOD, run
    assert not re.search("not recorded", judged.err + run.err)
    return assay, archive


def lines_of(assay):
    run = assay("archive", "export", "-")
    assert run.code == GOOD, run
    return [json.loads(line) for line in run.out.splitlines()]


def test_what_was_judged_is_recorded(recorded):
    assay, _ = recorded
    lines = lines_of(assay)
    kinds = [line["kind"] for line in lines]
    assert kinds.pop(0) == "reference"
    assert kinds == ["candidate", "verdict", "candidate", "verdict", "run", "verdict"], kinds
    for line in lines:
        fits(line, "archive")
    sources = {line["content"]: line["text"] for line in lines if line["kind"] == "candidate"}
    parent = "0" * 64
    for line in lines:
        assert line["parent"] == parent
        parent = line["hash"]
        if line["kind"] == "verdict":
            fits(line["verdict"], "verdict")
            text = sources[line["source"]]
            assert hashlib.sha256(text.encode()).hexdigest() == line["verdict"]["candidate"]["hash"]
            assert line["terms"]["correctness_only"] is True
            assert line["verdict"]["problem"]["hash"] == lines[0]["content"]
    assert lines[2]["verdict"]["outcome"] == lines[2]["outcome"] == "correct"
    assert lines[2]["terms"]["size"] == "tiny"
    assert lines[6]["source"] == lines[2]["source"]


def test_records_are_listed_and_shown(recorded):
    assay, _ = recorded
    listed = assay("archive", "list").out.splitlines()
    assert [int(line.split()[0]) for line in listed] == [7, 6, 5, 4, 3, 2, 1]
    wrong = assay("archive", "list", "--problem", "softmax", "--outcome", "wrong").out
    assert wrong.count("\n") == 1 and "off_by_one.cpp" in wrong, wrong
    assert assay("archive", "list", "--limit", "2").out.count("\n") == 2
    assert assay("archive", "list", "--problem", "relu").out == ""
    shown = assay("archive", "show", wrong.split()[3])
    assert shown.code == GOOD and "WRONG" in shown.out, shown
    assert "#include <assay/kernel.h>" in shown.out and '"size":"tiny"' in shown.out, shown
    by_id = assay("archive", "show", lines_of(assay)[4]["id"])
    assert by_id.out == shown.out
    right = lines_of(assay)[2]["id"]
    diff = assay("archive", "diff", right, wrong.split()[3])
    names = r"\n--- \S*fused\.cpp\n\+\+\+ \S*off_by_one\.cpp\n@@ -1,"
    assert diff.code == GOOD and re.search(names, diff.out), diff
    assert diff.out.startswith("- ") and "\n+ " in diff.out and "wrong" in diff.out, diff
    assert "the same source" in assay("archive", "diff", right, right).out
    for arguments in (["list", "--outcome", "fast"], ["show", "00000000"], ["show", "x"], []):
        assert assay("archive", *arguments).code == USAGE
    assert "see assay archive show --help" in assay("archive", "show").err


def test_a_changed_byte_is_found(recorded, tmp_path):
    assay, archive = recorded
    whole = assay("archive", "verify")
    assert whole.code == GOOD and whole.out.startswith("7 records, whole"), whole
    changed = tmp_path / "changed.sqlite"
    content = archive.read_bytes()
    assert content.count(b'"outcome":"wrong"') == 1
    changed.write_bytes(content.replace(b'"outcome":"wrong"', b'"outcome":"wrung"'))
    run = assay("archive", "verify", "--archive", changed)
    assert run.code == WRONG and run.out.startswith("record 5: "), run
    run = assay("archive", "export", "-", "--archive", changed)
    assert run.code == WRONG and "record 5 is left out" in run.err, run
    assert [json.loads(line)["sequence"] for line in run.out.splitlines()] == [1, 2, 3, 4, 6, 7]
    changed.write_bytes(content[:8192] + bytes(8192) + content[16384:])
    run = assay("archive", "verify", "--archive", changed)
    assert run.code in (WRONG, ENVIRONMENT), run
    for place in (archive, f"{archive}.lock"):
        itself = assay("archive", "export", place)
        assert itself.code == USAGE and archive.read_bytes() == content, itself
    missing = assay("archive", "verify", "--archive", tmp_path / "missing.sqlite")
    assert missing.code == USAGE and "there is no archive" in missing.err, missing


def test_an_archive_that_cannot_be_written_costs_no_verdict(assay, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    command = ["judge", SOFTMAX, KERNELS / "off_by_one.cpp", KERNELS / "off_by_one.cpp", *SHORT]
    run = assay(*command, "--json", XDG_DATA_HOME=str(blocked))
    assert run.code == WRONG and len(run.verdict) == 2, run
    assert run.err.count("not recorded in the archive") == 1, run
    run = assay(*command, "--no-save", XDG_DATA_HOME=str(blocked))
    assert run.code == WRONG and "not recorded" not in run.err, run


def test_datasets_are_exported(recorded):
    assay, _ = recorded
    run = assay("archive", "export", "-", "--as", "verified", "--licence", "Apache-2.0")
    assert run.code == GOOD, run
    (line,) = [json.loads(text) for text in run.out.splitlines()]  # one source, judged twice
    fits(line, "dataset")
    assert line["candidate"]["source"] == (KERNELS / "fused.cpp").read_text()
    assert line["reference"] == (ROOT / "problems" / "level1" / "softmax.py").read_text()
    assert line["result"]["outcome"] == "correct" and line["origin"]["licence"] == "Apache-2.0"
    for kind in ("sft", "preference", "rl", "fouls", "kernelbook"):
        run = assay("archive", "export", "-", "--as", kind)
        assert run.code == GOOD and run.out == "", run
    assert "left out 1 sample for lack of the form" in run.err
    assert assay("archive", "export", "-", "--as", "dpo").code == USAGE


def test_the_feedback_of_a_verdict_is_shown(recorded):
    assay, _ = recorded
    listed = assay("archive", "list", "--outcome", "wrong").out.split()
    run = assay("archive", "show", listed[3], "--feedback")
    assert run.code == GOOD and run.out.startswith("Verdict: wrong: only the last column"), run
    assert "First wrong element: out[" in run.out
