"""What PyTorch says when it starts on a GPU of which another program holds all but a few MiB: words
that the judge has to know as want of memory. Appends one JSON object an attempt to RESULTS:

    python3 bench/gpu_context_room.py RESULTS.jsonl [--left 32 64 128 256 384 512]

`left_mib`: what was left [MiB]; `said`: the first line of the error; null: it started.
$ASSAY_PYTHON names the Python.
"""
import argparse
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests" / "gpu"))

import rows
from other_program import all_but

PYTHON = os.environ.get("ASSAY_PYTHON", sys.executable)
START = """
import torch
try:
    torch.zeros(1, device="cuda")
except Exception as error:
    print(f"{type(error).__name__}: {error}".splitlines()[0])
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("--left", type=int, nargs="+", default=[32, 64, 128, 256, 384, 512])
    arguments = parser.parse_args()
    for left_mib in arguments.left:
        with all_but(left_mib / 1024):
            done = subprocess.run(
                [PYTHON, "-c", START], capture_output=True, text=True, timeout=120, check=True
            )
        said = done.stdout.strip() or None
        rows.append(arguments.results, {"left_mib": left_mib, "said": said})
        print(left_mib, said, flush=True)


if __name__ == "__main__":
    main()
