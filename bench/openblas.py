#!/usr/bin/env python3
"""What PyTorch's matrix product reaches on one core, by the kernels that OpenBLAS is told to use.

    bench/openblas.py --output bench/results/MACHINE/openblas.jsonl

Each setting runs in a fresh process, since OpenBLAS chooses once: left alone, then each name. One
line a setting: median and best of 15 products of 1024 x 1024 matrices in float32.
"""
import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys

PRODUCT = """
import json, sys, time, torch
torch.set_num_threads(1)
a, b = torch.randn(1024, 1024), torch.randn(1024, 1024)
times = []
for _ in range(15):
    begin = time.perf_counter()
    torch.matmul(a, b)
    times.append(time.perf_counter() - begin)
rate = lambda seconds: 2 * 1024**3 / seconds / 1e9
print(json.dumps({"median_gflop_s": rate(sorted(times)[7]), "best_gflop_s": rate(min(times)),
                  "pytorch": torch.__version__}))
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", required=True, type=pathlib.Path)
    options = parser.parse_args()
    cpu = next(
        line.split(":", 1)[1].strip()
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    )
    for kernels in (None, "Prescott", "Haswell", "Zen", "SkylakeX", "Cooperlake"):
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        environment.pop("OPENBLAS_CORETYPE", None)
        if kernels:
            environment["OPENBLAS_CORETYPE"] = kernels
        process = subprocess.run(
            [sys.executable, "-c", PRODUCT], env=environment, capture_output=True, text=True
        )
        line = {
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "cpu": cpu,
            "kernels": kernels,
            **(json.loads(process.stdout) if process.returncode == 0 else {"failed": True}),
        }
        with options.output.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(line)


if __name__ == "__main__":
    main()
