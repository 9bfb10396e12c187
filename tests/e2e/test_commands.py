"""The commands around judging: new, explain, help; the schema; interruption; a full disk."""

import json
import os
import pathlib
import re
import signal
import subprocess
import time

import jsonschema
import pytest

from conftest import ASSAY, GOOD, INTERRUPTED, NOT_FASTER, ROOT, SLOW_TO_COMPILE, SOFTMAX
from conftest import UNSETTLED, USAGE, WRONG

KERNELS = ROOT / "kernels" / "softmax"


@pytest.mark.parametrize(
    "size, candidate",
    [
        ("tiny", "fused.cpp"),
        ("tiny", "off_by_one.cpp"),
        pytest.param("small", "fused.cpp", marks=pytest.mark.thorough),
    ],
)
def test_verdicts_follow_the_schema(assay, size, candidate):
    schema = json.loads((ROOT / "docs" / "verdict.schema.json").read_text())
    run = assay.judge(SOFTMAX, KERNELS / candidate, "--size", size)
    jsonschema.validate(run.verdict, schema)


def test_p_demands_more(assay):
    run = assay.judge(SOFTMAX, KERNELS / "fused.cpp", "--size", "tiny", "--p", "1000")
    assert run.code in (NOT_FASTER, UNSETTLED), run
    assert run.verdict["speed"]["threshold"] == 1000


def test_against_another_candidate(assay):
    arguments = ["--size", "tiny", "--against", KERNELS / "naive.cpp"]
    run = assay.judge(SOFTMAX, KERNELS / "fused.cpp", *arguments)
    assert run.code in (GOOD, UNSETTLED), run
    assert list(run.verdict["speed"]["baselines"]) == ["against"], run
    assert run.verdict["speed"]["against"]["path"] == str(KERNELS / "naive.cpp")


@pytest.mark.parametrize("form", ["native", "c"])
def test_a_stub_builds_and_is_judged_wrong(assay, tmp_path, form):
    suffix = {"native": ".cpp", "c": ".c"}[form]
    stub = tmp_path / ("stub" + suffix)
    run = assay("new", SOFTMAX, "--size", "tiny", "--form", form, "-o", stub)
    assert run.code == 0 and stub.exists(), run
    assert assay("new", SOFTMAX, "-o", stub).code == USAGE, "an existing file is not overwritten"
    run = assay.judge(SOFTMAX, stub, "--size", "tiny")
    assert run.code == WRONG, run


def test_a_stub_in_python_is_the_reference(assay, tmp_path):
    problem = tmp_path / "problem.py"
    source = pathlib.Path(SOFTMAX).with_name("rms_norm.py").read_text()
    problem.write_text(source.replace("super().__init__()", "super(Model, self).__init__()"))
    assert assay("new", problem, "--form", "python", "-o", tmp_path / "copy.py").code == 0
    renamed = tmp_path / "renamed.py"
    renamed.write_text(problem.read_text().replace("class Model(", "class ModelNew("))
    arguments = ["--set", "ROWS=8", "--set", "FEATURES=64", "--correctness-only"]
    run = assay.judge(problem, tmp_path / "copy.py", renamed, *arguments)
    assert run.code == GOOD, run


# A terminal's Ctrl-C reaches the hosts, too. One that was still starting died of it, and the judge
# said that this machine lacks something; one that came while the interpreter was asked what it is
# ended with a bug.
@pytest.mark.parametrize("seconds", [0.06, 0.1, 0.2, 0.6, 1.0, 1.6])
def test_ctrl_c_at_a_terminal_is_an_interrupt_whenever_it_comes(assay, leftovers, seconds):
    process = assay.start("judge", SOFTMAX, KERNELS / "naive.cpp", "--size", "small", "-q")
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == INTERRUPTED and err.strip() == "assay: interrupted", (out, err)
    assert not leftovers()


def test_explain_writes_a_program_that_shows_the_failure(assay):
    run = assay.judge(SOFTMAX, KERNELS / "off_by_one.cpp", "--size", "tiny")
    run = assay("explain", run.verdict["id"], "-o", "call")
    assert run.code == 0, run
    command = run.out.strip().splitlines()[-1]
    shown = subprocess.run(
        command, shell=True, cwd=assay.home, capture_output=True, text=True, timeout=120
    )
    assert shown.returncode == 1, shown
    assert re.search(r"out\[\d+\]: got .* expected", shown.stdout), shown


def test_explain_refuses_what_did_not_fail_and_what_is_unknown(assay, tmp_path):
    assert assay("explain", "0123456789ab").code == USAGE
    run = assay.judge(SOFTMAX, KERNELS / "fused.cpp", "--size", "tiny", "--correctness-only")
    run = assay("explain", run.verdict["id"])
    assert run.code == USAGE and "no failing call" in run.err, run


def test_an_interrupt_keeps_the_verdicts_that_stand_and_leaves_nothing(assay, leftovers):
    candidates = [str(KERNELS / "off_by_one.cpp")] + [str(KERNELS / "naive.cpp")] * 3
    process = subprocess.Popen(
        [str(ASSAY), "judge", SOFTMAX, *candidates, "--size", "small", "--json", "-v"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=assay.environment,
        text=True,
    )
    for line in process.stderr:
        if "speed: " in line:
            break
    assert process.poll() is None, "it ended without a word on speed"
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == INTERRUPTED
    assert [verdict["outcome"] for verdict in json.loads(out)] == ["wrong"]
    assert leftovers() == set()


def test_an_interrupt_ends_a_build(assay, write, leftovers):
    process = subprocess.Popen(
        [str(ASSAY), "judge", SOFTMAX, write("slow.cpp", SLOW_TO_COMPILE), "--size", "tiny", "-v"],
        stderr=subprocess.PIPE,
        env=assay.environment,
        text=True,
    )
    for line in process.stderr:
        if "compiling" in line:
            break
    assert process.poll() is None, "the build ended by itself"
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == INTERRUPTED
    assert time.monotonic() - begin < 10
    assert leftovers() == set()


def test_a_killed_judge_leaves_no_process(assay, leftovers):
    process = subprocess.Popen(
        [str(ASSAY), "judge", SOFTMAX, str(KERNELS / "naive.cpp"), "--size", "small", "-v"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=assay.environment,
        text=True,
    )
    for line in process.stderr:
        if "speed: " in line:
            break
    process.kill()
    process.wait()
    # The control group of a killed judge is removed by the next one.
    assert leftovers(but_below="/sys/") == set()
    assay.judge(SOFTMAX, KERNELS / "off_by_one.cpp", "--size", "tiny")
    assert leftovers() == set()


def test_two_judges_at_once(assay):
    command = [str(ASSAY), "judge", SOFTMAX, str(KERNELS / "off_by_one.cpp"), "--size", "tiny"]
    both = [
        subprocess.Popen(command, stdout=subprocess.PIPE, env=assay.environment) for _ in range(2)
    ]
    for process in both:
        process.communicate(timeout=120)
        assert process.returncode == WRONG


def test_a_state_folder_that_cannot_be_written_costs_no_verdict(assay, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    run = assay.judge(
        SOFTMAX, KERNELS / "off_by_one.cpp", "--size", "tiny", XDG_STATE_HOME=str(blocked)
    )
    assert run.code == WRONG and run.verdict["outcome"] == "wrong", run
    assert "not saved" in run.err, run


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small file system")
def test_a_full_disk_costs_the_cache_and_no_verdict(assay, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)])
    if mounted.returncode != 0:
        pytest.skip("this machine mounts no file system")
    try:
        (disk / "ballast").write_bytes(bytes(64 << 10))
        folders = {"XDG_CACHE_HOME": str(disk), "XDG_STATE_HOME": str(disk)}
        for _ in range(2):
            run = assay.judge(SOFTMAX, KERNELS / "off_by_one.cpp", "--size", "tiny", **folders)
            assert run.code == WRONG and run.verdict["outcome"] == "wrong", run
            assert run.verdict["cost"]["build_cached"] is False, "half an artifact was taken"
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_full_stdout_is_said(assay):
    with open("/dev/full", "w") as full:
        process = subprocess.run(
            [str(ASSAY), "judge", SOFTMAX, str(KERNELS / "off_by_one.cpp"), "--size", "tiny"],
            stdout=full,
            stderr=subprocess.PIPE,
            env=assay.environment,
            text=True,
            timeout=120,
        )
    assert process.returncode == 8 and "cannot write" in process.stderr, process


def test_help_names_the_exit_codes(assay):
    run = assay("judge", "--help")
    assert run.code == 0 and "Exit codes" in run.out and "Examples" in run.out, run
    assert assay("--version").out.startswith("assay "), run
    assert assay("nonsense").code == USAGE


@pytest.mark.skipif(os.geteuid() != 0, reason="drops root to another user")
def test_an_ordinary_user_can_judge(assay, tmp_path):
    if any(folder.stat().st_mode & 0o005 != 0o005 for folder in [ROOT, *ROOT.parents]):
        pytest.skip("the checkout lies where another user cannot read it")
    for path in [tmp_path, *tmp_path.parents]:
        if path.stat().st_uid == 0 and path != path.parent and path.stat().st_mode & 0o777 == 0o700:
            path.chmod(0o755)
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, 65534, 65534)
    command = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    command += [str(ASSAY), "judge", SOFTMAX, str(KERNELS / "off_by_one.cpp"), "--size", "tiny"]
    folders = ("HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME")
    environment = dict(os.environ, **dict.fromkeys(folders, str(home)))
    process = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd="/", timeout=120
    )
    assert process.returncode == WRONG, process
