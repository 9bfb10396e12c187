"""How much of a search's time do its engine and the archive take?

    bench/search_overhead.py --out bench/results/cpu-2core/search_overhead.jsonl [--answers 24]

A program answers after 10 ms with one of the recorded kernels for softmax, each made a little
different, so that every answer is judged. ASSAY_TRACE tells how long the search waited for workers
and for answers; the rest of its time is its own: the strategy, prompts, the archive's writes. That
is an upper bound, since much of it passes while a candidate is judged. Adds a row.
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import rows

ASSAY = os.environ.get("ASSAY_BINARY", str(rows.ROOT / "build" / "release" / "assay"))
ANSWERS = rows.ROOT / "tests" / "transcripts" / "softmax.sample.jsonl"
PROGRAM = """#!/bin/sh
cat > /dev/null
sleep 0.01
number=${ASSAY_PROMPT_KEY#propose/}
number=${number%/0}
sed "s/@NUMBER@/$number/" "$(dirname "$0")/answer$((number % 4))"
"""


def write_program(folder):
    for i, line in enumerate(ANSWERS.read_text(encoding="utf-8").splitlines()):
        text = json.loads(line)["answer"]
        head, include, tail = text.partition("#include <assay/kernel.h>")
        assert include, "an answer without the header"
        different = f"{head}{include}\nconstexpr int kNumber = @NUMBER@;{tail}"
        (folder / f"answer{i}").write_text(different, encoding="utf-8")
    program = folder / "answer.sh"
    program.write_text(PROGRAM, encoding="utf-8")
    return program


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--answers", type=int, default=24)
    parser.add_argument("--size", default="tiny")
    parser.add_argument("--verdict-seconds", type=float, default=6)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        trace = folder / "trace.json"
        environment = {**os.environ, "ASSAY_TRACE": str(trace)}
        for home in ("DATA", "STATE", "CACHE"):
            environment[f"XDG_{home}_HOME"] = str(folder / home.lower())
        run = subprocess.run(
            [ASSAY, "search", "softmax", "--size", options.size, "--strategy", "sample"]
            + ["--chains", str(options.answers), "--finalists", "1", "--jsonl", "-q"]
            + ["--verdict-seconds", str(options.verdict_seconds)]
            + ["--proposer", f"command:sh {write_program(folder)}"],
            env=environment,
            capture_output=True,
            text=True,
        )
        if run.returncode not in (0, 1, 9):
            sys.exit(run.stderr)
        end = json.loads(run.stdout.splitlines()[-1])
        text = trace.read_text(encoding="utf-8").rstrip().rstrip(",").lstrip("[")
        spans = json.loads(f"[{text.rstrip(']')}]")
    whole = next(span for span in spans if span["name"] == "search")
    seconds = collections.Counter()
    for span in spans:
        inside = whole["ts"] <= span["ts"] <= whole["ts"] + whole["dur"]
        if inside and (span["pid"], span["tid"]) == (whole["pid"], whole["tid"]):
            seconds[span["name"]] += span["dur"] / 1e6
    waited = seconds["wait for a worker"] + seconds["wait for an answer"]
    row = {
        "answers": options.answers,
        "size": options.size,
        "outcomes": end["outcomes"],
        "search_s": round(seconds["search"], 3),
        "own_s": round(seconds["search"] - waited, 3),
        "own_share": round(1 - waited / seconds["search"], 5),
    }
    print(json.dumps(row))
    if options.out:
        rows.append(options.out, row)
    return 0


if __name__ == "__main__":
    sys.exit(main())
