"""Judges 20 candidates of three problems in one session, and prints what became of each.

Usage: python3 examples/worker.py [PROGRAM], with the package `assay` installed, or python/ in
PYTHONPATH. The session keeps a problem open: PyTorch starts once for each, and later candidates
take a fraction of the first one's time.
"""

import pathlib
import sys
import time

import assay

ROOT = pathlib.Path(__file__).resolve().parents[1]


def main(program=None):
    problems = ("softmax", "matmul", "layer_norm")
    kernels = {name: sorted((ROOT / "kernels" / name).glob("*.cpp")) for name in problems}
    with assay.Session(program=program, device="cpu", size="tiny", threads=1) as session:
        for i in range(20):
            problem = problems[i % 3]
            path = kernels[problem][i // 3 % len(kernels[problem])]
            begin = time.monotonic()
            [verdict] = session.judge(problem, path)
            took_s = time.monotonic() - begin
            print(f"{problem:12} {path.name:16} {verdict.outcome:10} {took_s:.1f} s")


if __name__ == "__main__":
    main(*sys.argv[1:])
