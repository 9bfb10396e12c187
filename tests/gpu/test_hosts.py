"""The tests of the hosts that need a device: host/python/device_test.py, over this PyTorch."""
import concurrent.futures
import os
import re
import subprocess
import sys

from conftest import ROOT, support_folder

TESTS = ROOT / "host" / "python" / "device_test.py"
SIDE_BY_SIDE = 4  # most of their time goes into importing PyTorch


def run(folder, name):
    return subprocess.run(
        [sys.executable, "-B", "-s", str(TESTS), "-v", name],
        capture_output=True,
        text=True,
        timeout=400,
        cwd=folder,
        env=dict(os.environ, ASSAY_SUPPORT=str(support_folder()), OMP_NUM_THREADS="1"),
    )


def test_hosts_on_a_device_agree_with_the_oracle(tmp_path):
    on_device = TESTS.read_text().partition("class OnDevice")[2]
    names = [f"OnDevice.{name}" for name in re.findall(r"def (test_\w+)", on_device)]
    names += re.findall(r"^class (?!OnDevice)(\w+)", TESTS.read_text(), re.MULTILINE)
    assert "OnDevice.test_a_block_that_is_a_graph_gives_what_its_calls_give" in names
    with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        for name, ran in zip(names, pool.map(lambda name: run(tmp_path, name), names)):
            assert ran.returncode == 0, f"{name}: {ran.stderr[-6000:]}"
            assert (
                "no CUDA device" not in ran.stderr and "Ran 0 tests" not in ran.stderr
            ), ran.stderr
