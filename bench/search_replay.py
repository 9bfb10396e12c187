"""How fast are recorded answers replayed, where nothing is measured?

    bench/search_replay.py --out bench/results/cpu-2core/search_replay.jsonl [--answers 10000]

Four recorded answers for softmax are judged once. Then a transcript repeats them under other keys,
and is replayed with these verdicts (`--verdicts`): each answer is asked for by its prompt, is
recorded and read, and takes a verdict. Then that search is replayed in full (`--replay`). Adds a
row.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import rows

ASSAY = os.environ.get("ASSAY_BINARY", str(rows.ROOT / "build" / "release" / "assay"))
ANSWERS = rows.ROOT / "tests" / "transcripts" / "softmax.sample.jsonl"


def search(folder, *words):
    """Returns the run and its seconds."""
    environment = dict(os.environ)
    for name in ("DATA", "STATE", "CACHE"):
        environment[f"XDG_{name}_HOME"] = str(folder / name.lower())
    begin = time.monotonic()
    run = subprocess.run(
        [ASSAY, "search", *map(str, words), "--jsonl", "-q"],
        env=environment,
        capture_output=True,
        text=True,
    )
    if run.returncode not in (0, 1, 9):
        sys.exit(run.stderr)
    return run, time.monotonic() - begin


def repeat(count, path):
    lines = [json.loads(line) for line in ANSWERS.read_text(encoding="utf-8").splitlines()]
    with open(path, "w", encoding="utf-8") as file:
        for i in range(count):
            line = {**lines[i % len(lines)], "key": f"propose/{i}/0"}
            file.write(json.dumps(line) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--answers", type=int, default=10000)
    parser.add_argument("--folder", help="on the disk to use (default: that of temporary files)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = pathlib.Path(name)
        measured, recorded = folder / "measured.sqlite", folder / "recorded.sqlite"
        transcript = folder / "answers.jsonl"
        asked = ["softmax", "--size", "tiny", "--strategy", "sample", "--seed", "1"]
        asked += ["--verdict-seconds", "1"]
        search(folder, *asked, "--proposer", f"replay:{ANSWERS}", "--archive", measured)
        repeat(options.answers, transcript)
        run, seconds = search(
            folder, *asked, "--chains", options.answers, "--proposer", f"replay:{transcript}",
            "--verdicts", measured, "--archive", recorded,
        )
        end = json.loads(run.stdout.splitlines()[-1])
        full, full_seconds = search(folder, "--replay", "--archive", recorded)
        report = json.loads(full.stdout)
        row = {
            "answers": report["answers"],
            "outcomes": end["outcomes"],
            "records": report["records"],
            "replay_s": round(seconds, 2),
            "search_s": round(end["spent"]["seconds"], 2),
            "same": report["same"],
            "full_replay_s": round(full_seconds, 2),
            "archive_mb": round(recorded.stat().st_size / 1e6, 1),
        }
    print(json.dumps(row))
    if options.out:
        rows.append(options.out, row)
    return 0 if row["same"] == row["records"] and row["answers"] == options.answers else 1


if __name__ == "__main__":
    sys.exit(main())
