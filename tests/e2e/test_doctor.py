"""The doctor: on this machine, on machines that lack something, interrupted; and what the judge
makes of what it measured.
"""

import ctypes
import glob
import json
import os
import signal
import subprocess
import time

import pytest

from conftest import ASSAY, ENVIRONMENT, GOOD, INTERRUPTED, ROOT, SOFTMAX, USAGE, fits

FUSED = ROOT / "kernels" / "softmax" / "fused.cpp"


def hidden(paths):
    """Options of bubblewrap for a root in which these files and folders are not to be used."""
    options = ["--dev-bind", "/", "/"]
    for path in sorted({os.path.realpath(path) for path in paths}):
        options += ["--tmpfs", path] if os.path.isdir(path) else ["--ro-bind", "/dev/null", path]
    return options


COMPILERS = [
    path
    for pattern in ("*g++*", "*gcc*", "c++*", "cc", "c89*", "c99*", "clang*")
    for path in glob.glob(f"/usr/bin/{pattern}")
    if os.path.exists(path)
]


def doctor_without(assay, paths):
    """assay doctor --quick in a root without these; its findings by name."""
    process = subprocess.run(
        ["bwrap", *hidden(paths), str(ASSAY), "doctor", "--quick", "--json"],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=assay.home,
        env=assay.environment,
        stdin=subprocess.DEVNULL,
    )
    report = json.loads(process.stdout)
    fits(report, "doctor")
    return process.returncode, {finding["name"]: finding for finding in report["findings"]}


def torch_folders():
    code = "import torch, os; print(os.path.dirname(torch.__file__))"
    folders = set()
    for python in ("python3", "/usr/bin/python3"):
        run = subprocess.run([python, "-c", code], capture_output=True, text=True)
        folders.update(run.stdout.split())
    return folders


def test_a_machine_with_everything_is_ready(assay):
    run = assay("doctor", "--quick")
    assert run.code == GOOD, run
    assert " missing" not in run.out and "sandbox" in run.out, run


@pytest.mark.parametrize(
    "lacking, paths, mend",
    [
        ("PyTorch", torch_folders(), "apt-get install python3-torch"),
        ("sandbox", [], "apt-get install bubblewrap"),
        ("g++", COMPILERS, "apt-get install g++"),
        ("trial build", ["/usr/include/stdint.h"], "libc6-dev"),
    ],
)
def test_a_missing_thing_comes_with_the_command_that_mends_it(assay, lacking, paths, mend):
    if lacking == "sandbox":
        # The tool that hides it is itself: a machine where it is not found is asked for instead.
        run = assay("doctor", "--quick", "--json", ASSAY_BWRAP="/nowhere/bwrap")
        findings = {finding["name"]: finding for finding in json.loads(run.out)["findings"]}
        code = run.code
    else:
        code, findings = doctor_without(assay, paths)
    assert code == ENVIRONMENT, findings
    assert findings[lacking]["state"] == "missing", findings
    assert mend in findings[lacking]["mend"], findings


def test_a_gpu_that_is_wanted_must_be_there(assay):
    run = assay("doctor", "--quick", "--json", "--device", "cuda", CUDA_VISIBLE_DEVICES="")
    findings = {finding["name"]: finding for finding in json.loads(run.out)["findings"]}
    assert run.code == ENVIRONMENT and findings["GPU"]["state"] == "missing", run
    run = assay("doctor", "--quick", "--json", CUDA_VISIBLE_DEVICES="")
    findings = {finding["name"]: finding for finding in json.loads(run.out)["findings"]}
    assert run.code == GOOD and findings["GPU"]["found"].startswith("none"), run
    run = assay("doctor", "--quick", "--json", "--device", "cpu")
    assert run.code == GOOD and "GPU" not in run.out, run


def has_cuda_driver():
    try:
        return ctypes.CDLL("libcuda.so.1") is not None
    except OSError:
        return False


@pytest.mark.skipif(has_cuda_driver(), reason="there is a CUDA driver")
def test_a_gpu_that_is_wanted_is_looked_for_before_minutes_of_measuring(assay, tmp_path):
    run = assay("doctor", "--device", "cuda", XDG_STATE_HOME=str(tmp_path), timeout=30)
    assert run.code == ENVIRONMENT and not run.out, run
    assert "no CUDA driver: libcuda.so.1" in run.err and "--device cpu" in run.err, run
    assert not list(tmp_path.rglob("machine.json")), "what an earlier run kept stays"


def test_a_second_compiler_is_welcome_but_not_needed(assay):
    code, findings = doctor_without(assay, glob.glob("/usr/bin/clang++*"))
    assert code == GOOD, findings
    assert findings["clang++"]["state"] == "limited", findings
    assert findings["clang++"]["mend"], findings


@pytest.mark.alone
def test_ceilings_give_verdicts_a_percentage_of_the_peak(assay):
    run = assay.judge(SOFTMAX, FUSED, "--size", "tiny")
    assert run.verdict["roofline"] is None and run.verdict["work"]["bytes"] == 2 * 4 * 64 * 1024
    run = assay("doctor", "--json", timeout=300)
    machine = json.loads(run.out)["machine"]
    fits(machine, "machine")
    fits(json.loads((assay.home / "state" / "assay" / "machine.json").read_text()), "machine")
    assert run.code == GOOD, run
    if not machine["ceilings"]:
        # Refused: other programs were at work.
        findings = {finding["name"]: finding for finding in json.loads(run.out)["findings"]}
        assert findings["quiet"]["state"] == "limited", run
        assert "not kept" in findings["quiet"]["found"], run
        pytest.skip("the machine is busy")
    assert len(machine["ceilings"]) == min(2, os.cpu_count()), run
    one = machine["ceilings"][0]
    assert one["threads"] == 1 and one["copy_bytes_s"] > 1e8, machine
    assert max(one["float32_operations_s"].values()) > 1e9, machine
    run = assay.judge(SOFTMAX, FUSED, "--size", "tiny")
    roofline = run.verdict["roofline"]
    assert roofline["regime"] in ("memory", "compute", "overhead"), run
    eager = run.verdict["speed"]["baselines"]["eager"]
    expected = 100 * roofline["bound_ns"] / eager["candidate_time_ns"]
    assert roofline["percent_of_peak"] == pytest.approx(expected), run
    assert "of this machine's" in assay("judge", SOFTMAX, FUSED, "--size", "tiny").out
    run = assay("problems", "show", "softmax", "--size", "large", "--json")
    assert json.loads(run.out)["bound_ns"] > 0, run


def test_a_profile_of_another_machine_or_a_broken_one_is_not_used(assay):
    path = assay.home / "state" / "assay" / "machine.json"
    path.parent.mkdir(parents=True)
    for text, said in (("{", "cannot be used"), (ANOTHER_MACHINE, "measured on another machine")):
        path.write_text(text)
        run = assay.judge(SOFTMAX, FUSED, "--size", "tiny", "--correctness-only")
        assert said in run.err and "run assay doctor" in run.err, run
        assert run.verdict["roofline"] is None and path.read_text() == text, run


ANOTHER_MACHINE = json.dumps(
    {
        "schema": "assay.machine/1",
        "created": "2026-01-01T00:00:00Z",
        "cpu": "another",
        "cores": 512,
        "caches": [],
        "ceilings": [],
        "empty_call_ns": 0,
        "empty_python_call_ns": 0,
        "noise": [],
    }
)


def test_an_interrupted_doctor_keeps_nothing_and_leaves_nothing(assay, leftovers):
    process = subprocess.Popen(
        [str(ASSAY), "doctor", "--noise"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=assay.home,
        env=assay.environment,
    )
    time.sleep(4)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == INTERRUPTED and "interrupted" in err, (out, err)
    assert not (assay.home / "state" / "assay" / "machine.json").exists()
    assert not leftovers()


@pytest.mark.parametrize(
    "name, said",
    [
        ("online-softmax", "they agree"),
        ("off-by-one", "only the last column of 2048 is wrong"),
        pytest.param("gap", "% of the peak", marks=pytest.mark.thorough),
        ("warmup", "warmed up"),
    ],
)
def test_demonstrations_show_what_they_promise(assay, name, said):
    run = assay("demo", name, timeout=300)
    assert run.code == GOOD and said in run.out, run


def test_demonstrations_on_a_gpu_say_what_they_need(assay):
    run = assay("demo", "off-by-one", "--device", "cuda")
    assert run.code == USAGE and "leave out --device cuda" in run.err, run
    for name in ("gap", "warmup"):
        # Where a test machine has a GPU, tests/gpu shows more.
        run = assay("demo", name, "--device", "cuda", timeout=300)
        without = "no CUDA driver" in run.err or "cannot use the GPU" in run.err
        assert run.code == GOOD or without, run
