#!/usr/bin/env python3
"""False improvements: identical binaries as the children of the best candidate of a search.

    build/release/assay search softmax --size tiny --from kernels/softmax/tunable.cpp \\
        --budget evals=30 --out best.cpp
    bench/false_improvements.py softmax best.cpp --size tiny --count 50 --output FILE.jsonl

The candidate is judged once, as the parent. Then it is judged --count times again as its own child,
with the terms of a search's first look, by one worker, and each time on new values. In four ways a
child may seem faster than its parent:

    greater    its median ratio is greater: what a search without intervals goes by
    separated  its interval lies above its parent's: what displaces an elite
    exceeds    `faster` at --p of its parent's ratio: what a race asks
    against    `faster` beside its parent (--against), what A/A asks

A line a child is appended to the output; ends with the rates and their exact 95% intervals. A
search itself never judges such a child: it builds to a known artifact.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

import rows
from aa import clopper_pearson

ROOT = pathlib.Path(__file__).resolve().parents[1]
WAYS = ("greater", "separated", "exceeds", "against")


class Worker:
    def __init__(self, program):
        pipe = subprocess.PIPE
        command = [program, "worker", "--device", "cpu"]
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        self.requests = 0

    def judge(self, terms, candidate):
        self.requests += 1
        request = {"id": str(self.requests), "request": "judge", "terms": terms}
        self.process.stdin.write(json.dumps({**request, "candidates": [candidate]}) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            event = json.loads(line)
            if event.get("id") == request["id"] and event["event"] == "verdict":
                return event["verdict"]
            if event["event"] in ("error", "unjudged"):
                sys.exit(f"false_improvements: {event['message']}")
        sys.exit("false_improvements: the worker has ended")


def ratio_of(verdict):
    """Median, ends of the interval and pairs; None where it was not timed."""
    if not verdict["speed"]:
        return None
    result = verdict["speed"]["baselines"].get(verdict["speed"]["headline"])
    return result and {name: result[name] for name in ("speedup", "ci", "pairs")}


def look_at(worker, terms, child, parent, path):
    """A row on one child: in which ways it seems faster than its parent."""
    first = worker.judge(terms, child)
    own = ratio_of(first)
    if own is None:
        return {"outcome": first["outcome"], "ratio": None}
    exceeds = worker.judge({**terms, "p": round(parent["speedup"], 3)}, child)
    against = worker.judge({**terms, "against": str(path)}, child)
    low, high = own["ci"][0], parent["ci"][1]
    return {
        "outcome": first["outcome"],
        "ratio": own,
        "greater": own["speedup"] > parent["speedup"],
        "separated": None not in (low, high) and low > high,
        "exceeds": exceeds["outcome"] == "faster",
        "against": against["outcome"] == "faster",
        "pairs": {"exceeds": ratio_of(exceeds), "against": ratio_of(against)},
    }


def report(children):
    timed = [row for row in children if row["ratio"]]
    print(f"{len(children)} children, {len(timed)} of them timed")
    for way in WAYS:
        wins = sum(row[way] for row in timed)
        low, high = clopper_pearson(wins, len(timed)) if timed else (0, 1)
        print(f"{way:10} {wins:4} ({low:.1%} to {high:.1%})")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("problem")
    parser.add_argument("candidate", type=pathlib.Path)
    parser.add_argument("--size", default="tiny")
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--budget", type=float, default=15, help="seconds of gate 2 a look")
    parser.add_argument("--threads", type=int, default=0, help="0: as assay judge has it")
    parser.add_argument("--output", required=True, type=pathlib.Path)
    binary = os.environ.get("ASSAY_BINARY", str(ROOT / "build" / "release" / "assay"))
    parser.add_argument("--assay", default=binary)
    options = parser.parse_args()
    path = options.candidate.resolve()
    child = {"name": path.name, "source": path.read_text(encoding="utf-8")}
    terms = {"problem": options.problem, "size": options.size, "one_size": True, "futility": True}
    terms |= {"budget_s": options.budget, "threads": options.threads}
    worker = Worker(options.assay)
    judged = worker.judge(terms, child)
    parent = ratio_of(judged)
    if parent is None:
        sys.exit(f"false_improvements: the parent was not timed: {judged['message']}")
    children = []
    for number in range(options.count):
        row = look_at(worker, terms, child, parent, path)
        children.append(row)
        about = {"problem": options.problem, "size": options.size, "artifact": None}
        about["artifact"] = judged["candidate"].get("artifact")
        rows.append(options.output, {**about, "child": number, "parent": parent, **row})
    report(children)


if __name__ == "__main__":
    main()
