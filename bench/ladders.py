"""Judges every rung of ladders on this machine: `ladders.py ASSAY OUT [LADDER...]`.

ASSAY is the program, OUT a folder. Each ladder (a ladder.toml for a GPU, or with --device cpu one
for the processor) is one call of the judge a size, so that all its rungs have one reference and one
baseline. Other options go to the judge. Verdicts without their
samples go to OUT/ladders.jsonl, one a line with the ladder's name before it; a table of them is
printed. --minutes bounds the whole, --rungs FROM:TO takes some of them, --first one size alone.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import time
import tomllib

from rows import append

ROOT = pathlib.Path(__file__).resolve().parents[1]


def find_ladders(names, device):
    folders = [pathlib.Path(name) for name in names] or [ROOT / "kernels"]
    ladders = []
    for path in sorted(path for folder in folders for path in folder.rglob("ladder*.toml")):
        ladder = tomllib.loads(path.read_text(encoding="utf-8"))
        if ladder["device"] == device:
            ladders.append((path.parent, ladder))
    return ladders


def command(assay, folder, ladder, size, rungs, options):
    problem = folder / ladder["problem"]
    arguments = [assay, "judge", str(problem) if problem.exists() else ladder["problem"]]
    arguments += [str(folder / rung["file"]) for rung in rungs]
    for name, value in size["set"].items():
        arguments += ["--set", f"{name}={value}"]
    if "precision" in ladder:
        arguments += ["--precision", ladder["precision"]]
    baselines = {ladder.get("baseline", "eager"): None}
    baselines |= dict.fromkeys(ladder.get("also_against", []))
    arguments += ["--device", ladder["device"], "--baseline", ",".join(baselines)]
    return [*arguments, "--jsonl", *options]


def show(rung, verdict):
    row = f"  {rung['file']:28} {verdict['outcome']:12}"
    speed = verdict.get("speed") or {}
    for name, result in (speed.get("baselines") or {}).items():
        row += (
            f" {result['candidate_time_ns'] / 1e3:10.2f} us"
            f" {100 * result['speedup']:6.1f}% of {name}"
        )
    if roofline := verdict.get("roofline"):
        row += f" {roofline['percent_of_peak']:5.1f}% of peak"
    row += f" (predicted {rung['predicted_percent_of_library']}%)"
    if verdict["outcome"] not in ("faster", "slower", "tie"):
        row += "\n      " + verdict["message"][:300].replace("\n", " ")
    print(row, flush=True)


def judge(assay, folder, ladder, size, rungs, out, options, limit_s):
    print(f"{folder.name} at {size['set']}", flush=True)
    process = subprocess.Popen(
        command(assay, folder, ladder, size, rungs, options),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + limit_s
    left = list(rungs)
    for line in process.stdout:
        event = json.loads(line)
        if event["event"] == "verdict":
            verdict = event["verdict"]
            verdict.pop("samples", None)
            show(left.pop(0), verdict)
            append(out / "ladders.jsonl", {"ladder": folder.name, **verdict})
        if time.monotonic() > deadline:
            process.terminate()
            print("  time is up", flush=True)
            break
    process.stdout.close()
    errors = process.stderr.read()
    if process.wait() not in (0, 1, 3, 4, 5, 7) and errors:
        print("  " + errors[-600:], flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("assay")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("ladders", nargs="*")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--minutes", type=float, default=9)
    parser.add_argument("--rungs", default=":", help="FROM:TO, as numbers of files")
    parser.add_argument("--first", action="store_true", help="the first size alone")
    options, more = parser.parse_known_args()
    end = time.monotonic() + 60 * options.minutes
    first, last = (int(part) if part else None for part in options.rungs.split(":"))
    for folder, ladder in find_ladders(options.ladders, options.device):
        rungs = [
            rung
            for rung in ladder["rung"]
            if (first or 0) <= int(rung["file"][:2]) <= (last or 99)
        ]
        for size in ladder["size"][: 1 if options.first else None]:
            left_s = end - time.monotonic()
            if left_s > 10:
                judge(options.assay, folder, ladder, size, rungs, options.out, more, left_s)
    return 0


if __name__ == "__main__":
    sys.exit(main())
