"""Demonstrations on a real GPU."""
import os
import re
import subprocess

import pytest

from conftest import ASSAY

pytestmark = pytest.mark.alone


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    environment = dict(os.environ, XDG_STATE_HOME=str(tmp_path_factory.mktemp("state")))

    def run(name):
        process = subprocess.run(
            [ASSAY, "demo", name, "--device", "cuda"],
            capture_output=True,
            text=True,
            timeout=300,
            env=environment,
        )
        assert process.returncode == 0, process.stdout + process.stderr
        return process.stdout

    return run


def test_the_gap_between_a_naive_product_and_the_library(demo):
    text = demo("gap")
    naive, library = (float(share) for share in re.findall(r"([\d.]+)% of the peak", text))
    assert naive < 15 < library <= 101, text
    assert "this GPU" in text


def test_a_first_call_is_slower_than_a_warmed_up_one(demo):
    text = demo("warmup")
    assert "one_read.cu" in text and text.count("call 1 ") == 2, text
    times = [float(time) for time in re.findall(r"call 1 +([\d.]+) [um]s", text)]
    assert len(times) == 2, text
    assert float(re.findall(r"([\d.]+)x", text)[-1]) > 1, text
