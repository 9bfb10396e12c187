"""What a worker takes for candidate after candidate, and whether it stays the same.

Usage: worker.py [--size tiny] [--set NAME=VALUE] [--candidate FILE] [--count 100]
[--results FILE] [--assay PROGRAM] [--pause SECONDS]. Judges `count` candidates of softmax in one
worker, none of whose builds is cached: the same kernel, each with a number of its own. After every
tenth it counts what the worker and all below it have: processes, descriptors of the worker itself,
memory. Each row of the results is one candidate's.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

from rows import ROOT, append


def children_of(pid):
    found = [pid]
    for parent in found:
        for task in pathlib.Path(f"/proc/{parent}/task").glob("*/children"):
            found += [int(child) for child in task.read_text().split()]
    return found


def memory_of(pid):
    """Anonymous pages of a process [bytes]; 0 of one that has ended."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return sum(
        int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("RssAnon")
    )


def resources(pid):
    processes = children_of(pid)
    return {
        "processes": len(processes),
        "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
        "anonymous_bytes": sum(memory_of(process) for process in processes),
        "own_anonymous_bytes": memory_of(pid),
    }


def judge(process, number, request):
    process.stdin.write(json.dumps({"id": str(number), **request}) + "\n")
    process.stdin.flush()
    for line in process.stdout:
        event = json.loads(line)
        if event.get("id") != str(number):
            continue
        if event["event"] == "verdict":
            verdict = event["verdict"]
        if event["event"] == "error":
            sys.exit(event["message"])
        if event["event"] == "done":
            return verdict


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--size", default="tiny")
    parser.add_argument("--set", action="append", default=[], help="instead of a size")
    softmax = ROOT / "kernels" / "softmax" / "fused.cpp"
    parser.add_argument("--candidate", type=pathlib.Path, default=softmax)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--results", type=pathlib.Path)
    parser.add_argument(
        "--pause", type=float, default=0, help="seconds between candidates, as a person takes"
    )
    parser.add_argument("--assay", default=str(ROOT / "build" / "release" / "assay"))
    options = parser.parse_args()
    source = options.candidate.read_text(encoding="utf-8")
    settings = dict(setting.split("=") for setting in options.set)
    terms = {"problem": "softmax", "set": settings} if settings else {"problem": "softmax"}
    terms |= {} if settings else {"size": options.size, "threads": 1}
    pipe = subprocess.PIPE
    process = subprocess.Popen([options.assay, "worker"], stdin=pipe, stdout=pipe, text=True)
    seconds = []
    for i in range(options.count):
        time.sleep(options.pause if i > 0 else 0)
        text = f"{source}\n// {os.getpid()} {time.time_ns()}\n"
        request = {"candidates": [{"name": options.candidate.name, "source": text}]}
        begin = time.monotonic()
        verdict = judge(process, i, {"request": "judge", "terms": terms, **request})
        seconds.append(time.monotonic() - begin)
        row = {"terms": terms, "candidate": i, "seconds": round(seconds[-1], 3)}
        row |= {"outcome": verdict["outcome"], "cost": verdict["cost"]}
        row |= {"pause_s": options.pause} if options.pause else {}
        if i % 10 == 0 or i == options.count - 1:
            row |= resources(process.pid)
            print(json.dumps({key: row[key] for key in row if key != "cost"}), flush=True)
        if options.results:
            append(options.results, row)
    process.stdin.close()
    process.wait()
    later = seconds[1:] or seconds
    print(f"first {seconds[0]:.2f} s; later median {statistics.median(later):.2f} s")


if __name__ == "__main__":
    main()
