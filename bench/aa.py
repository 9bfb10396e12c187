#!/usr/bin/env python3
"""A/A: judges a program against its own copy, many times, and counts how often it is 'faster'.

    bench/aa.py native|python|device --size tiny|small --count 200 --output FILE.jsonl
                [--problem NAME|FILE|all] [--candidate FILE] [--set NAME=VALUE ...]
                [--device cuda] [--seconds S]

`native` and `device` (on a GPU) judge a kernel against its own copy (--against), a softmax unless
--problem and --candidate name another; `python` judges the reference's own Python form against the
reference (eager). One line a verdict is appended to the
output; a run that is stopped goes on where it was. Ends with the rate and its exact 95% interval
(Clopper-Pearson).
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


def clopper_pearson(wins, count):
    """Exact 95% interval of a rate, by bisection on the binomial distribution."""
    from math import comb

    def at_most(k, p):
        return sum(comb(count, i) * p**i * (1 - p) ** (count - i) for i in range(k + 1))

    def bisect(condition):
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if condition(middle) else (low, middle)
        return low

    lower = 0.0 if wins == 0 else bisect(lambda p: 1 - at_most(wins - 1, p) < 0.025)
    upper = 1.0 if wins == count else bisect(lambda p: at_most(wins, p) > 0.025)
    return lower, upper


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("form", choices=["native", "python", "device"])
    parser.add_argument("--set", action="append", default=[], help="a constant of the problem")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no call after this")
    parser.add_argument("--size", default="tiny", help="'' for a problem outside of the suite")
    parser.add_argument("--problem", default="softmax", help="one of the suite, a file, or 'all'")
    parser.add_argument("--candidate", type=pathlib.Path, help="native, device: the kernel")
    parser.add_argument("--count", type=int, default=200, help="verdicts in the file at the end")
    parser.add_argument(
        "--batch", type=int, default=10, help="verdicts a call of assay: they share reference hosts"
    )
    parser.add_argument("--output", required=True, type=pathlib.Path)
    binary = os.environ.get("ASSAY_BINARY", str(ROOT / "build" / "release" / "assay"))
    parser.add_argument("--assay", default=binary)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.form != "python" and not options.candidate:
            problems = [find_problem("softmax")]
        elif options.problem == "all":
            problems = sorted((ROOT / "problems").glob("level*/*.py"))
        else:
            problems = [find_problem(options.problem)]
        end = time.monotonic() + options.seconds
        while (done := len(rows.read(options.output))) < options.count and time.monotonic() < end:
            problem = problems[done % len(problems)]
            count = 1 if len(problems) > 1 else min(options.batch, options.count - done)
            for verdict in judge(options, problem, count, pathlib.Path(folder)):
                rows.append(options.output, condense(verdict))
                if time.monotonic() > end:
                    break
            report(rows.read(options.output))


def judge(options, problem, count, folder):
    """Verdicts of one call of assay, as they come: a program against its own copy."""
    if options.form != "python":
        name = "one_read.cu" if options.form == "device" else "fused.cpp"
        candidate = options.candidate or ROOT / "kernels" / "softmax" / name
        extra = ["--against", str(candidate)]
    else:
        candidate = folder / "copy.py"
        candidate.write_text(own_form(problem.read_text()))
        extra = []
    command = [
        options.assay,
        "judge",
        str(problem),
        *[str(candidate)] * count,
        *(["--size", options.size] if options.size else []),
        "--device",
        options.device,
        *[word for constant in options.set for word in ("--set", constant)],
        "--jsonl",
        "-q",
        "--no-save",
        *extra,
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        for line in process.stdout:
            event = json.loads(line)
            if event["event"] == "verdict":
                yield event["verdict"]
    except GeneratorExit:  # nobody wants the rest
        process.terminate()
        process.wait()
        raise
    if process.wait() in (2, 8, 70, 130, -6, -11):
        sys.exit(f"assay ended with exit code {process.returncode}")


def find_problem(name):
    if name.endswith(".py"):
        return pathlib.Path(name)
    found = list((ROOT / "problems").glob(f"level*/{name}.py"))
    if len(found) != 1:
        sys.exit(f"no problem of the suite is named '{name}'")
    return found[0]


def condense(verdict):
    """What an A/A verdict shows, without what is the same in all of them."""
    speed = verdict["speed"]
    headline = speed["baselines"][speed["headline"]] if speed else None
    return {
        "id": verdict["id"],
        "cpu": verdict["machine"]["cpu"],
        "gpu": verdict["machine"]["gpu"],
        "load": os.getloadavg()[0],
        "problem": verdict["problem"]["name"],
        "set": verdict["problem"]["set"],
        "outcome": verdict["outcome"],
        "message": verdict["message"].replace(f"{ROOT}/", ""),
        "seed": verdict["seed"],
        "result": headline,
        "samples": verdict["samples"],
        "cost": verdict["cost"],
    }


def report(verdicts):
    outcomes = {}
    for verdict in verdicts:
        outcomes[verdict["outcome"]] = outcomes.get(verdict["outcome"], 0) + 1
    wins = outcomes.get("faster", 0)
    lower, upper = clopper_pearson(wins, len(verdicts))
    print(
        f"{len(verdicts)} verdicts: {outcomes}; 'faster' {wins / len(verdicts):.1%} "
        f"(95% interval {lower:.1%} to {upper:.1%})",
        flush=True,
    )


if __name__ == "__main__":
    main()
