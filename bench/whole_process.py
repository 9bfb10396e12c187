#!/usr/bin/env python3
"""Whole-process figures: what a user waits for, and what the judge takes.

    bench/whole_process.py --repeat 3 --output bench/results/MACHINE/whole_process.jsonl

Appends one line a measurement: the time of `assay --help`, and for one call that judges several
copies of the shipped softmax at `small` the parts of the first verdict and of the further ones,
the peak memory of the judge's own process and the bytes of the slots it maps.
"""
import argparse
import datetime
import json
import os
import pathlib
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]


def timed(command):
    """Seconds, peak resident bytes of the process itself, and its standard output."""
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return time.monotonic() - begin, usage.ru_maxrss * 1024, output


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--candidates", type=int, default=3)
    parser.add_argument("--output", required=True, type=pathlib.Path)
    parser.add_argument("--assay", default=str(ROOT / "build" / "release" / "assay"))
    options = parser.parse_args()
    candidate = str(ROOT / "kernels" / "softmax" / "fused.cpp")
    judge = [options.assay, "judge", str(ROOT / "problems/level1/softmax.py")]
    judge += [candidate] * options.candidates + ["--size", "small", "--json", "-q", "--no-save"]
    lines = []
    for _ in range(options.repeat):
        lines.append({"what": "help", "seconds": timed([options.assay, "--help"])[0]})
        seconds, peak, output = timed(judge)
        verdicts = json.loads(output)
        lines.append(
            {
                "what": "judge",
                "size": "small",
                "seconds": seconds,
                "peak_memory_bytes_with_shared": peak,
                "outcomes": [verdict["outcome"] for verdict in verdicts],
                "costs": [verdict["cost"] for verdict in verdicts],
                "cpu": verdicts[0]["machine"]["cpu"],
                "cores": verdicts[0]["machine"]["cores"],
            }
        )
    options.output.parent.mkdir(parents=True, exist_ok=True)
    date = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    with options.output.open("a") as file:
        for line in lines:
            file.write(json.dumps({"date": date, "load": os.getloadavg()[0], **line}) + "\n")
            print(json.dumps(line))


if __name__ == "__main__":
    main()
