"""The walls around foreign code, from the outside: a sandbox that leaks is not used, and an
ordinary user is judged for as root is."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest

from conftest import ASSAY, CORRECT, ENVIRONMENT, GOOD, ROOT, SOFTMAX, USAGE, Run, fits

sys.path.insert(0, str(ROOT / "tests"))
from as_user import as_user, why_not  # pylint: disable=wrong-import-position

KERNEL = str(ROOT / "kernels" / "softmax" / "fused.cpp")
QUICK = ("--size", "tiny", "--correctness-only")

# A bubblewrap that hands its secret on: what it was asked for, and a variable more.
LEAKY = f"""#!/usr/bin/python3 -IS
import os, sys
words = sys.argv[1:]
if words[:1] == ["--args"]:
    words[2:2] = ["--setenv", "SECRET", "swordfish"]
os.execv({shutil.which("bwrap")!r}, ["bwrap"] + words)
"""


@pytest.fixture
def leaky():
    """The path of that bubblewrap, where every user can run it."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "bwrap"
        path.write_text(LEAKY)
        for each in (path, path.parent):
            each.chmod(0o755)
        yield str(path)


def test_a_sandbox_that_leaks_is_refused_with_the_reason(assay, leaky):
    run = assay.judge(SOFTMAX, KERNEL, *QUICK, ASSAY_BWRAP=leaky)
    assert run.code == ENVIRONMENT, run
    assert "environment (SECRET)" in json.loads(run.out)["message"], run
    assert "environment (SECRET)" in run.err and "--allow-weak-sandbox" in run.err, run
    assert not (assay.home / "state" / "assay" / "verdicts").exists()
    for command in (("new", SOFTMAX, "-o", "-"), ("problems", "show", SOFTMAX)):
        run = assay(*command, ASSAY_BWRAP=leaky)
        assert run.code == ENVIRONMENT and "environment (SECRET)" in run.err, run


def test_a_weak_sandbox_is_told_wherever_its_verdict_goes(assay, leaky):
    arguments = (SOFTMAX, KERNEL, *QUICK, "--allow-weak-sandbox")
    run = assay.judge(*arguments, ASSAY_BWRAP=leaky)
    assert run.code in CORRECT, run
    fits(run.verdict, "verdict")
    assert run.verdict["machine"]["isolation"].startswith("WEAK: environment (SECRET); bubblewrap")
    assert "WARNING: THE SANDBOX DOES NOT HOLD HERE: environment (SECRET)" in run.err
    run = assay("judge", *arguments, ASSAY_BWRAP=leaky)
    assert "WEAK: environment (SECRET)" in run.out, run


def test_the_flag_changes_nothing_where_the_sandbox_holds(assay):
    run = assay.judge(SOFTMAX, KERNEL, *QUICK, "--allow-weak-sandbox")
    assert run.code in CORRECT and "WARNING" not in run.err, run
    assert run.verdict["machine"]["isolation"].startswith("bubblewrap"), run


def test_no_settings_file_can_allow_a_weak_sandbox(assay):
    folder = assay.home / "config" / "assay"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text("[judge]\nallow-weak-sandbox = true\n")
    run = assay.judge(SOFTMAX, KERNEL, *QUICK)
    assert run.code == USAGE and "allow-weak-sandbox" in run.err, run


def test_the_doctor_says_what_the_self_test_found(assay, leaky):
    run = assay("doctor", "--quick", "--json")
    assert run.code == GOOD, run
    found = {finding["name"]: finding for finding in run.verdict["findings"]}
    assert found["self-test"]["state"] == "good", found
    assert "attempts to break out, none did" in found["self-test"]["found"], found
    run = assay("doctor", "--quick", "--json", ASSAY_BWRAP=leaky)
    assert run.code == ENVIRONMENT, run
    found = {finding["name"]: finding for finding in run.verdict["findings"]}
    assert found["self-test"]["state"] == "missing", found
    assert "environment (SECRET)" in found["self-test"]["found"], found


def test_an_ordinary_user_is_judged_for_as_root_is():
    if reason := why_not():
        pytest.skip(reason)
    with tempfile.TemporaryDirectory(prefix="assay-as-user-") as name:
        folder = pathlib.Path(name)
        shutil.copy(ASSAY, folder / "assay")
        shutil.copytree(ASSAY.parent / "lib", folder / "lib")
        home = folder / "home"
        home.mkdir()
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)
        os.chown(home, 65534, 65534)
        home.chmod(0o700)
        problem = folder / "lib" / "assay" / "problems" / "level1" / "softmax.py"
        kernel = folder / "lib" / "assay" / "kernels" / "softmax" / "fused.cpp"
        arguments = ["judge", str(problem), str(kernel), "--size", "tiny", "--json"]
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}
        for folder_kind in ("CACHE", "STATE", "CONFIG"):
            environment[f"XDG_{folder_kind}_HOME"] = str(home / folder_kind.lower())
        process = subprocess.run(
            as_user([str(folder / "assay"), *arguments]),
            capture_output=True,
            text=True,
            timeout=300,
            cwd=home,
            env=environment,
            check=False,
        )
        run = Run(process)
        assert run.code in CORRECT, run
        assert run.verdict["correctness"]["passed"], run
        isolation = run.verdict["machine"]["isolation"]
        assert isolation.startswith("bubblewrap") and "the judge's uid" in isolation, run
        assert list((home / "state" / "assay" / "verdicts").iterdir()), run
