#!/usr/bin/env python3
"""How long `assay score` takes over thousands of verdict files.

    bench/score_bench.py --output bench/results/MACHINE/score.jsonl

Writes verdict files as `assay judge` keeps them: the sample verdicts of every outcome under names,
hashes and times of their own, those with a speed holding the raw samples of 9 pairs of 8 rounds.
Then scores the folder several times. The files are in the page cache then, as they are after a
judgement; a cold disk adds its own time. One line a run: seconds, and microseconds a file; what
the processors spent on it beside, which other programs on the machine stretch less.
"""
import argparse
import copy
import datetime
import hashlib
import json
import os
import pathlib
import random
import resource
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAIRS, ROUNDS = 9, 8


def samples(chance, ratio):
    """Blocks of about 96 ms of the reference, as one verdict's pairs have them."""
    pairs = []
    for _ in range(PAIRS):
        order = "".join(chance.choice(["rccr", "crrc"]) for _ in range(ROUNDS))
        reference_ns = 96_480_000 * chance.gauss(1, 0.01)
        blocks = [
            int((reference_ns if side == "r" else reference_ns / ratio) * chance.gauss(1, 0.003))
            for side in order
        ]
        settle = [chance.randrange(40_000, 60_000) if side == "r" else 0 for side in order]
        pair = {"baseline": "eager", "order": order, "block_ns": blocks, "settle_ns": settle}
        pairs.append(pair | {"charged_ns": []})
    return pairs


def verdict(chance, sample, number, problems):
    """One of its kind, of a candidate of its own."""
    fresh = copy.deepcopy(sample)
    digest = hashlib.sha256(str(number).encode()).hexdigest()
    fresh["id"] = digest[:12]
    fresh[
        "created"
    ] = f"2026-11-21T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z"
    name = f"problem_{number % problems:03}"
    fresh["problem"].update(
        name=name, hash=hashlib.sha256(name.encode()).hexdigest(), set={"ROWS": "512"}
    )
    fresh["candidate"].update(path=f"run/{name}/{number}.cpp", hash=digest)
    if fresh["speed"]:
        fresh["speed"]["against"] = None
        eager = fresh["speed"]["baselines"]["eager"]
        ratio = eager["speedup"] * chance.lognormvariate(0, 0.5)
        eager.update(speedup=ratio, candidate_time_ns=eager["time_ns"] / ratio)
        eager["certified_speedup"] = 0.97 * ratio
        fresh["samples"] = samples(chance, ratio)
    return fresh


def as_kept(value, depth=0):
    """The text as `assay judge` writes it: indented by 1, plain lists on one line."""
    plain = not isinstance(value, (dict, list)) or not value
    if isinstance(value, list):
        plain = plain or not any(isinstance(item, (dict, list)) for item in value)
    if plain:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    blank = " " * (depth + 1)
    if isinstance(value, dict):
        items = [f"{blank}{json.dumps(key)}: {as_kept(v, depth + 1)}" for key, v in value.items()]
        return "{\n" + ",\n".join(items) + "\n" + " " * depth + "}"
    items = [blank + as_kept(item, depth + 1) for item in value]
    return "[\n" + ",\n".join(items) + "\n" + " " * depth + "]"


def cpu_seconds():
    """Processor time of the programs that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--problems", type=int, default=250, help="that the verdicts are of")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    printed = subprocess.run(
        [options.build / "tests" / "print_sample_verdicts"], check=True, capture_output=True
    )
    kinds = [json.loads(line) for line in printed.stdout.splitlines()]
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        written_bytes = 0
        for number in range(options.files):
            text = as_kept(verdict(chance, kinds[number % len(kinds)], number, options.problems))
            (pathlib.Path(folder) / f"{number:05}.json").write_text(text + "\n")
            written_bytes += len(text) + 1
        for form in ([], ["--json"]):
            for _ in range(options.repeat):
                spent = cpu_seconds()
                begin = time.monotonic()
                subprocess.run(
                    [options.build / "assay", "score", folder, *form],
                    check=True,
                    stdout=subprocess.DEVNULL,
                )
                seconds = time.monotonic() - begin
                lines.append(
                    {
                        "files": options.files,
                        "bytes": written_bytes,
                        "problems": options.problems,
                        "form": "json" if form else "text",
                        "seconds": round(seconds, 4),
                        "cpu_seconds": round(cpu_seconds() - spent, 4),
                        "us_a_file": round(1e6 * seconds / options.files, 2),
                    }
                )
    date = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    stamp = {"date": date, "load": os.getloadavg()[0], "cores": os.cpu_count()}
    for line in lines:
        print(json.dumps(line))
        if options.output:
            options.output.parent.mkdir(parents=True, exist_ok=True)
            with options.output.open("a") as file:
                file.write(json.dumps({**stamp, **line}) + "\n")


if __name__ == "__main__":
    main()
