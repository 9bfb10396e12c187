"""Seconds from a wheel to the first verdict, in an empty virtual environment beside PyTorch.

    python3 bench/wheel.py FILE.whl --out ROWS.jsonl [--runs 3]

Each run has a new environment (with the system's packages) and no caches. `install_s` is pip's,
`first_verdict_s` the time from the start of Python to the verdict on a softmax at `tiny`, with both
gates, `second_verdict_s` the same once more: compiled and probed before. `load` is the machine's
average of the minute before: other programs on its cores make a verdict take longer.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import rows

ROOT = pathlib.Path(__file__).resolve().parents[1]
SCRIPT = (
    "import assay, sys\n"
    "[verdict] = assay.judge('softmax', sys.argv[1], size='tiny', threads=1, budget_s=8)\n"
    "print(verdict.outcome, verdict.raw['toolchain']['pytorch'])"
)


def one_run(wheel, folder):
    os.chmod(folder, 0o755)  # started by root, sandboxes look below open folders alone
    environment = pathlib.Path(folder) / "environment"
    subprocess.run(
        [sys.executable, "-m", "venv", "--system-site-packages", environment], check=True
    )
    begin = time.monotonic()
    pip = [environment / "bin" / "pip", "install", "--quiet", "--no-index", wheel]
    subprocess.run(pip, check=True)
    row = {"install_s": round(time.monotonic() - begin, 1)}
    variables = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    for name in ("STATE", "CACHE", "DATA", "CONFIG"):
        variables[f"XDG_{name}_HOME"] = folder
    command = [environment / "bin" / "python", "-c", SCRIPT]
    command.append((ROOT / "kernels" / "softmax" / "fused.cpp").resolve())
    for name in ("first", "second"):
        begin = time.monotonic()
        ran = subprocess.run(
            command, env=variables, cwd=folder, stdout=subprocess.PIPE, text=True, check=True
        )
        row[f"{name}_verdict_s"] = round(time.monotonic() - begin, 1)
        row["outcome"], row["pytorch"] = ran.stdout.split()
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    for _ in range(options.runs):
        with tempfile.TemporaryDirectory(prefix="assay-wheel-") as folder:
            row = {"cores": len(os.sched_getaffinity(0)), "load": round(os.getloadavg()[0], 1)}
            row.update(one_run(options.wheel, folder))
        rows.append(options.out, row)
        print(row, flush=True)


if __name__ == "__main__":
    main()
