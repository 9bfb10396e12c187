"""What calls take on a GPU in short blocks, and in a run without pauses: a product in bfloat16,
which the power cap holds down, as PyTorch writes it beside itself, and a softmax, which memory
binds, as a kernel beside PyTorch's. Appends one JSON object a verdict to RESULTS:

    python3 bench/gpu_sustained.py RESULTS.jsonl [--seconds 10]
"""
import argparse
import json
import os
import pathlib
import subprocess
import tempfile

import rows

ROOT = pathlib.Path(__file__).resolve().parents[1]
ASSAY = os.environ.get("ASSAY_BINARY", str(ROOT / "build" / "release" / "assay"))
PRODUCT = """import torch


class Model(torch.nn.Module):
    def forward(self, left, right):
        return left @ right


N = 8192


def get_inputs():
    return [torch.randn(N, N).bfloat16(), torch.randn(N, N).bfloat16()]


def get_init_inputs():
    return []
"""
COPY = """import torch


class ModelNew(torch.nn.Module):
    def forward(self, left, right):
        return torch.mm(left, right)
"""


def judge(seconds, *arguments):
    command = [ASSAY, "judge", *map(str, arguments), "--device", "cuda", "--no-save", "-q"]
    command += ["--sustained", str(seconds), "--json"]
    process = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    if not process.stdout:
        raise SystemExit(process.stderr)
    return json.loads(process.stdout)


def row_of(verdict):
    """The verdict without what does not matter here; the clock in short blocks, by side."""
    speed = verdict["speed"] or {"baselines": {}}
    short_mhz = {
        side: [
            mhz
            for pair in verdict["samples"]
            for letter, mhz in zip(pair["order"], pair["sm_mhz"])
            if letter == side[0]
        ]
        for side in ("reference", "candidate")
    }
    return {
        "gpu": verdict["machine"]["gpu"],
        "problem": verdict["problem"]["name"],
        "signature": verdict["problem"]["signature"],
        "message": verdict["message"],
        "short": speed["baselines"].get("eager"),
        "short_sm_mhz": short_mhz,
        "sustained": verdict["sustained"],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=10)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        problem, copy = pathlib.Path(folder, "product.py"), pathlib.Path(folder, "product_new.py")
        problem.write_text(PRODUCT, encoding="utf-8")
        copy.write_text(COPY, encoding="utf-8")
        large = ("--set", "ROWS=8192", "--set", "COLUMNS=8192")
        for what in (
            (problem, copy),
            ("softmax", ROOT / "kernels" / "softmax" / "one_read.cu", *large),
        ):
            row = row_of(judge(arguments.seconds, *what))
            rows.append(arguments.results, row)
            print(row["problem"], row["message"])


if __name__ == "__main__":
    main()
