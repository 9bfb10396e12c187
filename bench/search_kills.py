"""Kills `assay search` and its workers again and again, and lets it go on: is anything lost?

    bench/search_kills.py --kills 50 [--seed 1]

A search of 60 variants, four in hand at a time, is started; after a random time its process is
killed (SIGKILL). At the end it runs undisturbed. Then each step has one result, each judged
candidate one verdict, and the evaluations that were spent are so many as were judged, and one a
kill at most: the worker's. The search is replayed, too, and must be the same. Prints one line of
JSON; exit code 1 if anything of this does not hold.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

import rows

ROOT = pathlib.Path(__file__).resolve().parent.parent
ASSAY = os.environ.get("ASSAY_BINARY", str(ROOT / "build" / "release" / "assay"))
SOURCE = """//! tune LIMIT = 2 1
//! tune NUMBER = NUMBERS
#include <assay/kernel.h>
#include <cmath>
extern "C" __attribute__((used)) const int number = NUMBER;  // so that each variant is judged
ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<float, 2> y) {
  for (int64_t row = 0; row < x.size(0); ++row) {
    const float* from = x.data() + row * x.size(1);
    float* to = y.data() + row * x.size(1);
    const int64_t columns = x.size(1) * LIMIT / 2;
    float largest = -INFINITY, sum = 0;
    for (int64_t i = 0; i < x.size(1); ++i) largest = from[i] > largest ? from[i] : largest;
    for (int64_t i = 0; i < x.size(1); ++i)
      sum += to[i] = std::exp(static_cast<long double>(from[i] - largest));
    for (int64_t i = 0; i < columns; ++i) to[i] /= sum;
  }
}
"""
VARIANTS = 60


class Search:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.environment = dict(os.environ)
        for name in ("DATA", "STATE", "CACHE"):
            self.environment[f"XDG_{name}_HOME"] = str(self.folder / name.lower())

    def command(self, *words):
        return [ASSAY, *map(str, words)]

    def run(self, *words):
        return subprocess.run(
            self.command(*words), env=self.environment, capture_output=True, text=True
        )

    def kill_after(self, seconds, *words):
        """Returns True if the process was still running."""
        process = subprocess.Popen(
            self.command(*words),
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            process.wait(timeout=seconds)
            return False
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            return True

    def records(self):
        exported = self.run("archive", "export", "-").stdout
        return [json.loads(line) for line in exported.splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=pathlib.Path, help="adds a row to this file")
    options = parser.parse_args()
    numbers = random.Random(options.seed)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        search = Search(folder)
        source = search.folder / "kernel.cpp"
        numbers_of_variants = " ".join(map(str, range(1, VARIANTS // 2 + 1)))
        source.write_text(SOURCE.replace("NUMBERS", numbers_of_variants))
        first = ["search", "softmax", "--size", "tiny", "--from", source]
        first += ["--strategy", "exhaustive"]
        first += ["--budget", "evals=1000", "--width", "4", "--verdict-seconds", "1", "-q"]
        kills = int(search.kill_after(3, *first))
        ended = False
        while kills < options.kills and not ended:
            ended = not search.kill_after(numbers.uniform(0.1, 6), "search", "--resume", "-q")
            kills += not ended
        last = search.run("search", "--resume", "--jsonl", "-q")
        end = json.loads(last.stdout.splitlines()[-1])
        records = search.records()
        every = [record for record in records if record["kind"] == "result"]
        every = [record for record in every if not record["result"].get("alive")]
        lost = [record["result"]["cost"] for record in every if record["result"].get("lost")]
        results = collections.Counter(
            record["name"]
            for record in every
            if not record["result"].get("released") and not record["result"].get("lost")
        )
        kinds = collections.Counter(record["kind"] for record in records)
        row = {
            "kills": kills,
            "results": len(results),
            "results_twice": sum(count > 1 for count in results.values()),
            "verdicts": kinds["verdict"],
            "intents": kinds["step"],
            "lost": len(lost),
            "lost_evaluations": sum(cost["evaluations"] for cost in lost),
            "evaluations": end["spent"]["evaluations"],
            "outcomes": end["outcomes"],
            "replayed": search.run("search", "--replay").returncode == 0,
            "chain": search.run("archive", "verify").returncode == 0,
            "seconds": round(time.monotonic() - begin),
        }
    print(json.dumps(row))
    if options.out:
        rows.append(options.out, row)
    good = row["chain"] and row["results_twice"] == 0
    good = good and row["verdicts"] == row["results"] >= VARIANTS
    good = good and row["replayed"] and row["lost_evaluations"] <= row["kills"]
    return 0 if good and row["evaluations"] == row["results"] + row["lost_evaluations"] else 1


if __name__ == "__main__":
    sys.exit(main())
