#!/usr/bin/env python3
"""Kills `assay run` again and again, and checks that no verdict is lost, changed or given twice.

    bench/run_kills.py --kills 200 --output bench/results/MACHINE/run_kills.jsonl

A folder of native candidates for problems of the suite, each with a text of its own, is judged at
`tiny`, correctness alone. The call is killed (SIGKILL, the worker with it) after a random time, and
started again, until the kills are used up; the last call runs to its end. One line a kill: seconds
until it came, rows before and after. Ends with an error where a row that stood changed or vanished,
a candidate was judged twice, or one is missing.
"""
import argparse
import datetime
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
KERNELS = ("softmax/fused.cpp", "rms_norm/fused.cpp")


def make_candidates(folder, count):
    for kernel in KERNELS:
        problem = kernel.split("/")[0]
        text = (ROOT / "kernels" / kernel).read_text()
        for number in range(count // len(KERNELS)):
            name = f"{problem}_{number}.cpp"
            (folder / name).write_text(f"{text}\n// copy {number} in {folder.name}\n")


def rows_of(path):
    """The file's whole rows, as bytes."""
    text = path.read_bytes() if path.exists() else b""
    return text[: text.rfind(b"\n") + 1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--candidates", type=int, default=600)
    parser.add_argument("--seconds-max", type=float, default=4, help="of a call until it is killed")
    parser.add_argument("--output", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    assay = os.environ.get("ASSAY_BINARY", str(ROOT / "build" / "release" / "assay"))
    generator = random.Random()
    with tempfile.TemporaryDirectory() as temporary, arguments.output.open("a") as output:
        folder = pathlib.Path(temporary) / "run"
        folder.mkdir()
        make_candidates(folder, arguments.candidates)
        folders = ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME")
        environment = {**os.environ, **dict.fromkeys(folders, temporary)}
        command = [assay, "run", folder, "--size", "tiny", "--correctness-only", "--devices", "cpu"]
        path = folder / "verdicts.jsonl"
        kept = b""
        for kill in range(1, arguments.kills + 2):
            process = subprocess.Popen(
                command,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=environment,
                text=True,
                start_new_session=True,
            )
            last = kill > arguments.kills
            seconds = None if last else generator.uniform(0, arguments.seconds_max)
            begin = time.monotonic()
            try:
                _, err = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                _, err = process.communicate()
            rows = rows_of(path)
            if not rows.startswith(kept):
                sys.exit(f"kill {kill}: rows that stood have changed")
            line = {
                "kill": kill,
                "seconds": round(time.monotonic() - begin, 3),
                "ended": process.returncode,
                "rows_before": kept.count(b"\n"),
                "rows_after": rows.count(b"\n"),
                "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            }
            print(json.dumps(line), file=output, flush=True)
            kept = rows
            if last and process.returncode != 0:
                sys.exit(f"the last call ended with {process.returncode}: {err[-2000:]}")
        judged = [json.loads(row) for row in kept.splitlines()]
        keys = {row["key"] for row in judged}
        candidates = len(list(folder.glob("*.cpp")))
        wrong = [row for row in judged if row["verdict"]["outcome"] != "correct"]
        if not len(judged) == len(keys) == candidates or wrong:
            sys.exit(
                f"{candidates} candidates, {len(judged)} rows, {len(keys)} keys, {len(wrong)} "
                "of them not 'correct'"
            )
    print(
        f"{arguments.kills} kills: {candidates} candidates, each judged once, no row changed"
    )


if __name__ == "__main__":
    main()
