"""Mining on a real GPU: torch.compile's own code, captured, judged and written as pairs."""
import json
import os
import subprocess

from conftest import ASSAY, CORRECT

# Constructor, buffers that forward changes, nested inputs, a number, and two results.
PROBLEM = """import torch
import torch.nn as nn


class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.scale = nn.Parameter(torch.rand(size))

    def forward(self, x):
        return torch.nn.functional.gelu(self.norm(x)) * self.scale


class Model(nn.Module):
    def __init__(self, size, blocks):
        super(Model, self).__init__()
        self.blocks = nn.ModuleList([Block(size) for _ in range(blocks)])
        self.norm = nn.BatchNorm1d(size)

    def forward(self, pair, factor):
        x = pair[0]
        for block in self.blocks:
            x = block(x)
        return {"out": self.norm(x) + pair[1] * factor, "sum": x.sum(dim=1)}


def get_inputs():
    return [[torch.randn(256, 512), torch.randn(256, 512)], 0.5]


def get_init_inputs():
    return [512, 2]
"""
BREAKS = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        torch._dynamo.graph_break()
        return x * 2


def get_inputs():
    return [torch.rand(8, 8)]
"""
PRODUCT = BREAKS.replace("torch._dynamo.graph_break()\n        return x * 2", "return x @ x")


def test_pairs_of_a_folder(tmp_path):
    folder = tmp_path / "own"
    folder.mkdir()
    for name, text in {"block": PROBLEM, "breaks": BREAKS, "product": PRODUCT}.items():
        (folder / f"{name}.py").write_text(text)
    process = subprocess.run(
        [ASSAY, "mine", folder, "-o", tmp_path / "out", "--device", "cuda", "--modes", "default"]
        + ["--budget", "20", "--no-save", "--workers", "1"],
        capture_output=True,
        text=True,
        timeout=500,
        env=dict(os.environ, XDG_STATE_HOME=str(tmp_path / "state")),
    )
    said = process.stdout + process.stderr
    assert process.returncode == 0, said
    assert "mined 1 of 3; refused 2" in said, said
    assert "torch.compile breaks its graph" in said, said
    assert "only calls PyTorch's libraries" in said, said
    (line,) = (tmp_path / "out" / "kernelbook.jsonl").read_text().splitlines()
    pair = json.loads(line)
    assert pair["verdict"]["outcome"] in CORRECT, pair["verdict"]
    assert pair["module_name"] == "block"
    assert any(kernel.startswith("triton_") for kernel in pair["mined"]["kernels"])
    assert {"torch", "triton"} <= pair["mined"]["versions"].keys()
