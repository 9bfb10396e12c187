#!/usr/bin/env python3
"""Whole-process figures: what a user waits for, and what the judge takes.

    bench/whole_process.py --repeat 3 --output bench/results/MACHINE/whole_process.jsonl

Appends one line a measurement: the time of `assay --help`, and for one call that judges several
copies of the shipped softmax at `small` the parts of the first verdict and of the further ones,
the peak memory of the judge's own process, its own pages and the slots that it shares apart.
"""
import argparse
import datetime
import json
import os
import pathlib
import re
import subprocess
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]


class MemoryPeaks(threading.Thread):
    """Largest resident bytes seen of a process: its own pages, and shared ones, which are slots."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self._status = pathlib.Path(f"/proc/{pid}/status")
        self.own = self.shared = 0

    def run(self):
        while True:
            try:
                text = self._status.read_text()
            except OSError:
                return
            sizes = dict(re.findall(r"Rss(\w+):\s+(\d+) kB", text))
            if not sizes:
                return
            own = int(sizes["Anon"]) + int(sizes["File"])
            self.own = max(self.own, own * 1024)
            self.shared = max(self.shared, int(sizes["Shmem"]) * 1024)
            time.sleep(0.02)


def timed(command):
    """Seconds, memory peaks of the process itself, and its standard output."""
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    peaks = MemoryPeaks(process.pid)
    peaks.start()
    output = process.stdout.read()
    process.wait()
    return time.monotonic() - begin, peaks, output


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
        seconds, peaks, output = timed(judge)
        verdicts = json.loads(output)
        lines.append(
            {
                "what": "judge",
                "size": "small",
                "seconds": seconds,
                "first_verdict_seconds": seconds
                - sum(verdict["cost"]["total_s"] for verdict in verdicts[1:]),
                "peak_own_memory_bytes": peaks.own,
                "peak_slots_bytes": peaks.shared,
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
