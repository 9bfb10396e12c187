"""The tests of the hosts that need a device: host/python/device_test.py, over this PyTorch."""
import os
import subprocess
import sys

from conftest import ROOT, support_folder


def test_hosts_on_a_device_agree_with_the_oracle(tmp_path):
    ran = subprocess.run(
        [sys.executable, "-B", "-s", str(ROOT / "host" / "python" / "device_test.py"), "-v"],
        capture_output=True,
        text=True,
        timeout=400,
        cwd=tmp_path,
        env=dict(os.environ, ASSAY_SUPPORT=str(support_folder()), OMP_NUM_THREADS="1"),
    )
    assert ran.returncode == 0, ran.stderr[-6000:]
    assert "no CUDA device" not in ran.stderr, ran.stderr[-6000:]
    assert "test_a_block_that_is_a_graph_gives_what_its_calls_give" in ran.stderr
