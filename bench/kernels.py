#!/usr/bin/env python3
"""Judges the shipped kernels and compares each outcome with what the kernel says of itself.

    bench/kernels.py --output bench/results/MACHINE/kernels.jsonl

Each file under kernels/ has one line `expected: OUTCOME at SIZE` in a comment of its own (or
`expected: wrong`). Every kernel is judged at that size against eager PyTorch, on one thread. One
line a kernel goes to the output: the outcome, the speedup, times and the share of the machine's
peak. A table follows. Exit code 1 when an outcome is not the expected one. Meant for a quiet
machine: on a busy one kernels end `unsettled`. --only takes words, one of
which a path must have.
"""
import argparse
import collections
import datetime
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
SUFFIXES = {".cpp", ".c", ".py"}
EXPECTED = re.compile(
    r"^(?://|#|/\*) expected: (?:(faster|slower|tie) at (tiny|small|large)|(wrong))(?: \*/)?$", re.M
)

Kernel = collections.namedtuple("Kernel", "path problem expected size")


def shipped_kernels():
    """Every kernel under kernels/ but those of ladders and models: its problem's file, its line.

    `expected` is None where there is not exactly one such line; a wrong kernel is wrong at small.
    """
    problems = {path.stem: path for path in ROOT.glob("problems/level*/*.py")}
    kernels = []
    for path in sorted((ROOT / "kernels").glob("*/*")):
        if path.suffix not in SUFFIXES:
            continue
        # A rung's ladder says what it is; parts of a whole model are no candidates.
        if any((path.parent / name).exists() for name in ("ladder.toml", "suite.toml")):
            continue
        text = path.read_text()
        if "import triton" in text:
            continue  # for a GPU, as .cu files are
        lines = EXPECTED.findall(text)
        outcome, size, wrong = lines[0] if len(lines) == 1 else ("", "", "")
        problem = problems.get(path.parent.name)
        kernels.append(Kernel(path, problem, outcome or wrong or None, size or "small"))
    return kernels


def judge(assay, kernels, extra):
    """The verdicts of several kernels of one problem and size, in their order."""
    paths = [kernel.path.relative_to(ROOT) for kernel in kernels]
    command = [assay, "judge", kernels[0].problem.relative_to(ROOT), *paths]
    command += ["--size", kernels[0].size, "--threads", "1", "--json", "-q", "--no-save", *extra]
    process = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, cwd=ROOT
    )
    if not process.stdout:
        sys.exit(f"assay judge {kernels[0].problem}: exit {process.returncode}\n{process.stderr}")
    verdicts = json.loads(process.stdout)
    return verdicts if isinstance(verdicts, list) else [verdicts]


def line(kernel, verdict):
    """What is kept of a verdict."""
    baselines = (verdict["speed"] or {}).get("baselines", {})
    speed = baselines.get("eager", {})
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "file": str(kernel.path.relative_to(ROOT / "kernels")),
        "problem": verdict["problem"]["name"],
        "size": kernel.size,
        "expected": kernel.expected,
        "outcome": verdict["outcome"],
        "speedup": speed.get("speedup"),
        "ci": speed.get("ci"),
        "eager_ns": speed.get("time_ns"),
        "candidate_ns": speed.get("candidate_time_ns"),
        "percent_of_peak": (verdict.get("roofline") or {}).get("percent_of_peak"),
        "pairs": speed.get("pairs"),
        "note": speed.get("note") or (None if speed else verdict["message"]),
        "cpu": verdict["machine"]["cpu"],
        "assay": verdict["toolchain"]["assay"],
        "pytorch": verdict["toolchain"]["pytorch"],
    }


def print_table(lines):
    print(
        f"{'kernel':40}{'expected':>10}{'outcome':>14}{'speedup':>9}{'eager':>11}{'it':>11}  peak"
    )
    for entry in lines:
        differs = "" if entry["outcome"] == entry["expected"] else "  <- not as expected"
        speed = " " * 31
        if entry["speedup"]:
            eager_ms, own_ms = entry["eager_ns"] / 1e6, entry["candidate_ns"] / 1e6
            speed = f"{entry['speedup']:8.2f}x{eager_ms:8.3f} ms{own_ms:8.3f} ms"
        peak = f"{entry['percent_of_peak']:5.0f}%" if entry["percent_of_peak"] else " " * 6
        head = f"{entry['file']:40}{entry['expected']:>10}{entry['outcome']:>14}"
        print(f"{head}{speed}{peak}{differs}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--verdicts", type=pathlib.Path, help="append whole verdicts, one a line")
    parser.add_argument("--only", nargs="+", default=[""], help="words of the paths to judge")
    parser.add_argument("--assay", default=str(ROOT / "build" / "release" / "assay"))
    parser.add_argument("--budget", default="60", help="seconds for each kernel's measurement")
    options = parser.parse_args()
    groups = collections.defaultdict(list)
    for kernel in shipped_kernels():
        if kernel.expected is None or kernel.problem is None:
            sys.exit(f"{kernel.path}: no problem of its folder's name, or no `expected:` line")
        name = str(kernel.path.relative_to(ROOT / "kernels"))
        if any(word in name for word in options.only):
            groups[kernel.problem, kernel.size].append(kernel)
    lines = []
    for kernels in groups.values():
        verdicts = judge(options.assay, kernels, ["--budget", options.budget])
        for kernel, verdict in zip(kernels, verdicts):
            lines.append(line(kernel, verdict))
            print(kernel.path.relative_to(ROOT), lines[-1]["outcome"], file=sys.stderr, flush=True)
            if options.verdicts:
                with options.verdicts.open("a") as file:
                    file.write(json.dumps(verdict) + "\n")
            if options.output:
                options.output.parent.mkdir(parents=True, exist_ok=True)
                with options.output.open("a") as file:
                    file.write(json.dumps(lines[-1]) + "\n")
    print_table(lines)
    return 1 if any(entry["outcome"] != entry["expected"] for entry in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
