#!/usr/bin/env python3
"""What each defence costs: the time of a verdict with it and without it, taken in turns.

    bench/defences.py [--runs N] [--only NAME...] > results.jsonl

Judges a native and a python candidate with the program whose defences can be taken away
(build/release/assay-weakened). One JSON line a defence and candidate: medians of the whole call and
of the verdict's own parts [s], and the ratio of whole calls. A ratio of 1.1 says that the defence
takes a tenth more. Run it on a machine that does nothing else.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
WEAKENED = ROOT / "build" / "release" / "assay-weakened"
CANDIDATES = {"native": "kernels/rms_norm/fused.cpp", "python": "kernels/softmax/model_new.py"}
PROBLEMS = {"native": "rms_norm", "python": "softmax"}
PARTS = ("start_s", "fill_s", "timed_s", "overhead_s")


def names():
    source = (ROOT / "src" / "base" / "defence_names.cc").read_text()
    return re.findall(r'Defence::k\w+, "([a-z-]+)"', source)


def judge(form, without):
    """Whole seconds, and the verdict's cost."""
    environment = dict(os.environ)
    environment.pop("ASSAY_WEAKEN", None)
    if without:
        environment["ASSAY_WEAKEN"] = without
    begin = time.monotonic()
    process = subprocess.run(
        [str(WEAKENED), "judge", PROBLEMS[form], str(ROOT / CANDIDATES[form])]
        + ["--size", "small", "--json", "--no-save", "-q"],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    whole_s = time.monotonic() - begin
    if not process.stdout:
        sys.exit(f"{form} without {without}: {process.stderr}")
    return whole_s, json.loads(process.stdout)["cost"]


def compare(form, name, runs):
    taken = {"with": [], "without": []}
    for run in range(runs):
        order = ("with", "without") if run % 2 == 0 else ("without", "with")
        for which in order:
            taken[which].append(judge(form, name if which == "without" else None))
    row = {"bench": "defences", "defence": name, "candidate": form, "runs": runs}
    for which, results in taken.items():
        row[which] = {"whole_s": round(statistics.median(whole for whole, _ in results), 3)}
        for part in PARTS:
            row[which][part] = round(statistics.median(cost[part] for _, cost in results), 4)
    row["ratio"] = round(row["with"]["whole_s"] / row["without"]["whole_s"], 3)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", nargs="*", choices=names())
    parser.add_argument("--forms", nargs="*", default=list(CANDIDATES), choices=CANDIDATES)
    arguments = parser.parse_args()
    for form in arguments.forms:
        judge(form, None)  # builds the candidate
        for name in arguments.only or names():
            print(json.dumps(compare(form, name, arguments.runs)), flush=True)


if __name__ == "__main__":
    main()
