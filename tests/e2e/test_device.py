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
TINY = ("--set", "ROWS=2", "--set", "COLUMNS=16")


@pytest.mark.skipif(HAS_GPU, reason="this machine has a GPU")
@pytest.mark.parametrize("name", ["kernel.cu", "model.py"])
def test_a_machine_without_a_gpu_is_told(assay, write, name):
    source = KERNEL if name.endswith(".cu") else "class ModelNew: pass\n"
    run = assay("judge", SOFTMAX, write(name, source), "--device", "cuda", "-q", *TINY)
    assert run.code == ENVIRONMENT, run
    assert "no CUDA driver" in run.err


def test_cuda_is_not_judged_on_the_processor(assay, write):
    run = assay("judge", SOFTMAX, write("kernel.cu", KERNEL), "--device", "cpu", "-q")
    assert run.code == USAGE and "kernel.cu is CUDA" in run.err, run


def test_a_source_without_launches_is_told(assay, write):
    run = assay("judge", SOFTMAX, write("kernel.cu", "__global__ void f() {}\n"), "-q")
    assert run.code == USAGE and "no '//! launch' line" in run.err, run


@pytest.mark.parametrize("order", [1, -1])
def test_processor_and_gpu_are_judged_apart(assay, write, order):
    candidates = [write("kernel.cu", KERNEL), write("kernel.cpp", "#include <assay/kernel.h>\n")]
    run = assay("judge", SOFTMAX, *candidates[::order], "-q")
    assert run.code == USAGE and "kernel.cpp runs on the CPU" in run.err, run


def test_the_option_is_in_the_help(assay):
    run = assay("judge", "--help")
    assert run.code == GOOD and "--device" in run.out
