"""Judges problems that were not written here, unmodified, on a GPU: those of a KernelBench
checkout, some at a smaller size (--set). Candidates are the softmax kernels of kernels/, in all
three forms, and the problem's own model under the name that a candidate has. Appends one JSON
object a verdict:

    python3 bench/gpu_outside_problems.py CHECKOUT RESULTS.jsonl [--seconds S] [--device cpu]

Begins nothing after S seconds; problems whose copy the results have are left out. $ASSAY_BINARY
names the program.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import rows
from own_form import own_form

ROOT = pathlib.Path(__file__).resolve().parents[1]
ASSAY = os.environ.get("ASSAY_BINARY", str(ROOT / "build" / "release" / "assay"))
SOFTMAX = [
    ROOT / "kernels" / "softmax" / name for name in ("one_read.cu", "native.cu", "triton_rows.py")
]
# Of the checkout's folder KernelBench: the problem, its constants, and candidates beside the copy.
PROBLEMS = [
    ("level1/23_Softmax.py", {"batch_size": 4096, "dim": 16384}, SOFTMAX),
    ("level1/1_Square_matrix_multiplication_.py", {}, []),
    ("level1/19_ReLU.py", {"batch_size": 4096, "dim": 16384}, []),
    ("level1/40_LayerNorm.py", {}, []),
    ("level1/47_Sum_reduction_over_a_dimension.py", {"batch_size": 16}, []),
    ("level1/88_MinGPTNewGelu.py", {}, []),
    ("level1/100_HingeLoss.py", {"batch_size": 4096, "input_shape": "(4096,)"}, []),
    ("level2/12_Gemm_Multiply_LeakyReLU.py", {}, []),
    ("level2/1_Conv2D_ReLU_BiasAdd.py", {"batch_size": 16}, []),
    ("level3/17_SqueezeNetFireModule.py", {"batch_size": 8}, []),
]


def copy_of(problem, folder):
    """The problem's own model as a candidate."""
    text = problem.read_text(encoding="utf-8")
    path = pathlib.Path(folder) / f"copy_of_{problem.stem}.py"
    path.write_text(own_form(text), encoding="utf-8")
    return path


def judge(problem, constants, candidates, device):
    command = [ASSAY, "judge", str(problem), *map(str, candidates)]
    command += ["--device", device, "--json", "-q", "--no-save"]
    command += [word for name, value in constants.items() for word in ("--set", f"{name}={value}")]
    begin = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    took_s = time.perf_counter() - begin
    if not done.stdout:
        print(f"{problem.name}: exit code {done.returncode}: {done.stderr[-1000:]}", flush=True)
        return []
    verdicts = json.loads(done.stdout)
    verdicts = verdicts if isinstance(verdicts, list) else [verdicts]
    return [{"exit_code": done.returncode, "whole_s": took_s, **condense(v)} for v in verdicts]


def condense(verdict):
    speed = verdict["speed"]
    return {
        "gpu": verdict["machine"]["gpu"],
        "set": verdict["problem"]["set"],
        "form": verdict["candidate"]["form"],
        "outcome": verdict["outcome"],
        "message": verdict["message"],
        "draws": [draw["result"] for draw in (verdict["correctness"] or {}).get("draws", [])],
        "baseline": speed["baselines"][speed["headline"]] if speed else None,
        "roofline": verdict["roofline"],
        "cost": verdict["cost"],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=pathlib.Path)
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--device", default="cuda", choices=["cpu", "cuda"])
    arguments = parser.parse_args()
    folder = arguments.checkout / "KernelBench"
    if not folder.is_dir():
        sys.exit(
            f"{arguments.checkout} is no checkout of KernelBench: it has no folder KernelBench"
        )
    seen = {
        row["problem"]
        for row in rows.read(arguments.results)
        if row["candidate"].startswith("copy_of_")
    }
    end = time.monotonic() + arguments.seconds
    for name, constants, kernels in PROBLEMS:
        if name in seen:
            continue
        if time.monotonic() > end:
            break
        with tempfile.TemporaryDirectory() as temporary:
            problem = folder / name
            candidates = [*kernels, copy_of(problem, temporary)]
            judged = judge(problem, constants, candidates, arguments.device)
        names = [path.name for path in candidates]
        for candidate, row in zip(names, judged):
            rows.append(arguments.results, {"problem": name, "candidate": candidate, **row})
            print(name, candidate, row["outcome"], row["message"][:150], flush=True)


if __name__ == "__main__":
    main()
