"""assay mine: problems compiled, wrapped, judged and written as pairs. tests/mine/fake_inductor.py
stands in for the compiler; tests/gpu/test_mine.py asks the real one.
"""
import json
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from conftest import ENVIRONMENT, GOOD, ROOT, USAGE

QUICK = ("--correctness-only", "--threads", "1", "--no-save", "--quiet", "--device", "cpu")
SCALED = """import torch
import torch.nn as nn

SIZE = 8


class Model(nn.Module):
    \"\"\"Scales and shifts.\"\"\"

    def __init__(self, size):
        super(Model, self).__init__()
        self.weight = nn.Parameter(torch.rand(size))
        self.register_buffer("shift", torch.rand(size))

    def forward(self, x):
        return torch.relu(x * self.weight + self.shift), x - self.weight


def get_inputs():
    return [torch.randn(4, SIZE)]


def get_init_inputs():
    return [SIZE]
"""
PLAIN = """import torch


class Model(torch.nn.Module):
    {line}

    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(4, 8)]
"""


def python_without_compiler():
    for python in ("python3", "/usr/bin/python3"):
        ask = [python, "-c", "import torch; print(hasattr(torch, 'compile'))"]
        said = subprocess.run(ask, capture_output=True, text=True).stdout.strip()
        if said == "False":
            return python
    pytest.skip("the stand-in is for a PyTorch without torch.compile")


@pytest.fixture(scope="module")
def compiling():
    """A Python whose PyTorch has none of its own, with the stand-in."""
    python = python_without_compiler()
    # A sandbox's user may not look into pytest's folders.
    home = pathlib.Path(tempfile.mkdtemp(prefix="assay-mine-", dir="/var/tmp"))
    home.chmod(0o755)
    make = [python, "-m", "venv", "--without-pip", "--system-site-packages", home]
    subprocess.run(make, check=True)
    (packages,) = home.glob("lib/python3*/site-packages")
    text = (ROOT / "tests" / "mine" / "fake_inductor.py").read_text()
    (packages / "fake_inductor.py").write_text(text)
    (packages / "fake_inductor.pth").write_text("import fake_inductor\n")
    yield str(home / "bin" / "python")
    shutil.rmtree(home)


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def mine(assay, compiling, folder):
    call = ("mine", folder, "-o", "out", "--modes", "default", "--set", "SIZE=16")
    run = assay(*call, *QUICK, "--python", compiling)
    assert run.code == GOOD, run
    return run


def test_pairs_are_mined_judged_and_written(assay, compiling, write):
    run = mine(assay, compiling, write("scaled.py", SCALED))
    assert "mined 1 of 1; refused 0" in run.out
    assert "1 correct pair, 0 of them faster" in run.out
    (pair,) = rows(assay.home / "out" / "kernelbook.jsonl")
    assert (pair["entry_point"], pair["module_name"]) == ("Model", "scaled")
    assert "SIZE = 16" in pair["python_code"]
    assert "call([self.weight, self.shift, x])" in pair["triton_code"]
    assert pair["verdict"]["outcome"] == "correct"
    assert pair["mined"]["kernels"] and pair["mined"]["mode"] == "default"
    assert pair["verdict"]["seed"].isdigit()


@pytest.mark.thorough
def test_work_goes_on_and_pairs_are_read_back(assay, compiling, tmp_path):
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "scaled.py").write_text(SCALED)
    (folder / "dies.py").write_text(PLAIN.format(line="__import__('os')._exit(7)"))
    run = mine(assay, compiling, folder)
    assert "mined 1 of 2; refused 1" in run.out
    assert "torch.compile ended its process with exit code 7" in run.out
    out = assay.home / "out"
    (pair,) = rows(out / "kernelbook.jsonl")

    # Nothing is mined or judged twice.
    before = {name: (out / name).read_text() for name in ("mined.jsonl", "verdicts.jsonl")}
    mine(assay, compiling, folder)
    assert {name: (out / name).read_text() for name in before} == before
    assert rows(out / "kernelbook.jsonl") == [pair]

    back = assay("import", "kernelbook", out / "kernelbook.jsonl", "-o", "back")
    assert back.code == GOOD, back
    judged = assay("run", assay.home / "back" / "manifest.jsonl", *QUICK[:-2], "--one-size")
    assert judged.code == GOOD, judged
    (verdict,) = rows(assay.home / "back" / "verdicts.jsonl")
    assert verdict["verdict"]["outcome"] == "correct"


def test_a_python_without_compiler_is_named(assay):
    python_without_compiler()
    run = assay("mine", "softmax", "--size", "tiny", "-o", "out", *QUICK)
    assert run.code == ENVIRONMENT, run
    assert "has no torch.compile: name a Python" in run.err
    assert not (assay.home / "out" / "kernelbook.jsonl").exists()


def test_nothing_mined_is_said(assay, compiling, write):
    broken = write("broken.py", PLAIN.format(line="FAULT = unknown"))
    run = assay("mine", broken, "-o", "out", "--modes", "default", *QUICK, "--python", compiling)
    assert run.code == USAGE, run
    assert "nothing could be mined" in run.err
