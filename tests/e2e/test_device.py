"""Judging on a GPU, on a machine that has none: what is asked is understood, and what is missing is
said. scripts/test-gpu has the tests that need one.
"""
import os

import pytest

from conftest import ENVIRONMENT, GOOD, SOFTMAX, USAGE

HAS_GPU = os.path.exists("/dev/nvidiactl")
KERNEL = """//! launch copy grid=(1) block=(32) args=(x, out)
extern "C" __global__ void copy(const float* x, float* out) { out[threadIdx.x] = x[threadIdx.x]; }
"""
NATIVE = """#include <assay/kernel.h>
ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<float, 2> out, cudaStream_t stream) {}
"""
SOURCES = {"kernel.cu": KERNEL, "native.cu": NATIVE, "model.py": "class ModelNew: pass\n"}
TINY = ("--set", "ROWS=2", "--set", "COLUMNS=16")


@pytest.mark.skipif(HAS_GPU, reason="this machine has a GPU")
@pytest.mark.parametrize("name", SOURCES)
def test_a_machine_without_a_gpu_is_told(assay, write, name):
    run = assay("judge", SOFTMAX, write(name, SOURCES[name]), "--device", "cuda", "-q", *TINY)
    assert run.code == ENVIRONMENT, run
    assert "no CUDA driver" in run.err


def test_a_gpu_under_quarantine_is_not_asked(assay, write, tmp_path):
    state = tmp_path / "state"
    note = state / "assay" / "quarantine" / "GPU-07070707-0707-0707-0707-070707070707"
    note.parent.mkdir(parents=True)
    note.write_text("after spins.cu was ended, Some GPU has not answered for 30 s\n")
    arguments = ("judge", SOFTMAX, write("kernel.cu", KERNEL), "--device", "cuda", "-q", *TINY)
    run = assay(*arguments, XDG_STATE_HOME=str(state))
    assert run.code == ENVIRONMENT, run
    assert "is under quarantine: after spins.cu was ended" in run.err
    assert "assay doctor --device cuda" in run.err
    run = assay(*arguments, XDG_STATE_HOME=str(state), CUDA_VISIBLE_DEVICES="GPU-12345678")
    assert "quarantine" not in run.err


@pytest.mark.parametrize("name", ["kernel.cu", "native.cu"])
def test_cuda_is_not_judged_on_the_processor(assay, write, name):
    run = assay("judge", SOFTMAX, write(name, SOURCES[name]), "--device", "cpu", "-q")
    assert run.code == USAGE and f"{name} is CUDA" in run.err, run


def test_a_source_that_nobody_could_call_is_told(assay, write):
    run = assay("judge", SOFTMAX, write("kernel.cu", "__global__ void f() {}\n"), "-q")
    assert run.code == USAGE and "no '//! launch' line and no ASSAY_KERNEL" in run.err, run


@pytest.mark.parametrize("name", ["kernel.cu", "native.cu"])
@pytest.mark.parametrize("order", [1, -1])
def test_processor_and_gpu_are_judged_apart(assay, write, order, name):
    candidates = [write(name, SOURCES[name]), write("kernel.cpp", "#include <assay/kernel.h>\n")]
    run = assay("judge", SOFTMAX, *candidates[::order], "-q")
    assert run.code == USAGE and "kernel.cpp runs on the CPU" in run.err, run


def test_the_option_is_in_the_help(assay):
    run = assay("judge", "--help")
    assert run.code == GOOD and "--device" in run.out


def tool(folder, name):
    """A program in the place of one of NVIDIA's tools, which would be found."""
    path = folder / name
    path.write_text("#!/bin/sh\nexit 1\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("option", [("--profile",), ("--sanitize", "memcheck")])
def test_tools_look_at_what_runs_on_a_gpu_alone(assay, write, option):
    source = "#include <assay/kernel.h>\n"
    run = assay("judge", SOFTMAX, write("kernel.cpp", source), *option, "-q")
    assert run.code == USAGE, run
    assert f"{option[0]} needs a candidate that runs on a GPU: add --device cuda" in run.err


def test_an_unknown_tool_of_the_sanitizer_is_told(assay, write):
    run = assay("judge", SOFTMAX, write("kernel.cu", KERNEL), "--sanitize", "leakcheck", "-q")
    assert run.code == USAGE and "racecheck" in run.err, run


@pytest.mark.parametrize(
    "option, name, variable",
    [
        (("--profile",), "ncu", "ASSAY_NCU"),
        (("--sanitize", "racecheck"), "compute-sanitizer", "ASSAY_COMPUTE_SANITIZER"),
    ],
)
def test_a_tool_is_looked_for_before_any_work(assay, write, tmp_path, option, name, variable):
    arguments = ("judge", SOFTMAX, write("kernel.cu", KERNEL), "-q", *option, *TINY)
    if not os.path.exists("/usr/local/cuda") and not os.path.exists("/opt/nvidia"):
        run = assay(*arguments, **{variable: "", "CUDA_HOME": "", "CUDA_PATH": ""})
        assert run.code == ENVIRONMENT, run
        assert f"there is no {name} " in run.err and f"let {variable} name the program" in run.err
    run = assay(*arguments, **{variable: str(tmp_path / "nowhere")})
    assert run.code == USAGE and f"{variable} names" in run.err, run
    run = assay(*arguments, **{variable: tool(tmp_path, name)})
    if not HAS_GPU:
        assert run.code == ENVIRONMENT and "no CUDA driver" in run.err, run
