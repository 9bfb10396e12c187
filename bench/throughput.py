#!/usr/bin/env python3
"""How many verdicts a minute: many small candidates of a problem in one call, and the whole suite.

    bench/throughput.py --output bench/results/MACHINE/throughput.jsonl

First 50 native candidates for softmax at `small`, each with a text of its own, so that none comes
from the artifact cache; then every problem of the suite at `tiny` against its own Python form,
correctness alone, two judgements at a time. One line a measurement.
"""
import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import subprocess
import tempfile
import time

from own_form import own_form

ROOT = pathlib.Path(__file__).resolve().parents[1]


def judge(assay, *arguments):
    return subprocess.run(
        [assay, "judge", *map(str, arguments), "--json", "-q", "--no-save"],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )


def candidates(assay, folder, count):
    source = (ROOT / "kernels" / "softmax" / "fused.cpp").read_text()
    paths = []
    for number in range(count):
        path = folder / f"candidate_{number}.cpp"
        path.write_text(f"{source}\n// copy {number} of {folder.name}\n")
        paths.append(path)
    begin = time.monotonic()
    run = judge(assay, "softmax", *paths, "--size", "small")
    seconds = time.monotonic() - begin
    verdicts = json.loads(run.stdout)
    outcomes = {}
    for verdict in verdicts:
        outcomes[verdict["outcome"]] = outcomes.get(verdict["outcome"], 0) + 1
    return {
        "what": f"{count} candidates of softmax at small",
        "seconds": round(seconds, 2),
        "verdicts_a_minute": round(60 * len(verdicts) / seconds, 1),
        "outcomes": outcomes,
        "compiled": sum(not verdict["cost"]["build_cached"] for verdict in verdicts),
    }


def suite(assay, folder):
    problems = json.loads(
        subprocess.run(
            [assay, "problems", "--json", "--suite", ROOT / "problems"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    )

    def against_itself(problem):
        path = ROOT / "problems" / problem["file"]
        candidate = folder / f"{problem['name']}.py"
        candidate.write_text(own_form(path.read_text()))
        run = judge(assay, path, candidate, "--size", "tiny", "--correctness-only")
        return bool(json.loads(run.stdout)["correctness"]["passed"])

    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(2) as workers:
        correct = sum(workers.map(against_itself, problems))
    return {
        "what": "the suite at tiny against itself, correctness alone",
        "seconds": round(time.monotonic() - begin, 2),
        "problems": len(problems),
        "correct": correct,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--assay", default=str(ROOT / "build" / "release" / "assay"))
    parser.add_argument("--candidates", type=int, default=50)
    parser.add_argument("--output", required=True, type=pathlib.Path)
    options = parser.parse_args()
    for measure in (
        lambda folder: candidates(options.assay, folder, options.candidates),
        lambda folder: suite(options.assay, folder),
    ):
        load = os.getloadavg()[0]
        with tempfile.TemporaryDirectory() as folder:
            line = measure(pathlib.Path(folder))
        line = {
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "load": load,
            "cores": os.cpu_count(),
            **line,
        }
        with options.output.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(line)


if __name__ == "__main__":
    main()
