"""How long Python hosts take to start: executed, and forked from a nursery.

    python3 bench/host_starts.py --out ROWS.jsonl [--device cpu|cuda] [--candidates 6]

Candidates in one call of `assay judge` come from nurseries (src/hosts/nursery.h), one in a call of
its own is executed. All are the same softmax, each written a little differently, and only their
correctness is checked. A row a verdict has `start_s` of its cost, what it took to start its hosts;
the first of one call waits for the nurseries' own import.
"""
import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
ASSAY = os.environ.get("ASSAY_BINARY", str(ROOT / "build" / "release" / "assay"))
SOURCE = """import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)  # {number}
"""


def judge(paths, device):
    """Returns the verdicts of one call."""
    command = [ASSAY, "judge", "softmax", *map(str, paths), "--size", "tiny", "--one-size"]
    command += ["--device", device, "--correctness-only", "--no-save", "-q", "--jsonl"]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    return [event["verdict"] for event in events if event["event"] == "verdict"]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", required=True)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--candidates", type=int, default=6)
    arguments = parser.parse_args()
    commit = os.environ.get("ASSAY_JUDGE_COMMIT") or subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"],
        stdout=subprocess.PIPE, text=True, check=True,
    ).stdout.strip()
    starts = {"executed": [], "forked": []}
    with tempfile.TemporaryDirectory() as folder, open(arguments.out, "a", encoding="utf-8") as out:
        paths = []
        for number in range(arguments.candidates):
            path = pathlib.Path(folder) / f"softmax_{number}.py"
            path.write_text(SOURCE.format(number=number), encoding="utf-8")
            paths.append(path)
        calls = [("executed", [path]) for path in paths] + [("forked", paths)]
        for way, some in calls:
            for place, verdict in enumerate(judge(some, arguments.device)):
                now = datetime.datetime.now(datetime.timezone.utc)
                row = {
                    "judge": commit,
                    "date": now.isoformat(timespec="seconds"),
                    "way": way,
                    "place": place,
                    "outcome": verdict["outcome"],
                    "start_s": verdict["cost"]["start_s"],
                    "total_s": verdict["cost"]["total_s"],
                    "machine": verdict["machine"],
                }
                out.write(json.dumps(row) + "\n")
                if way == "executed" or place > 0:
                    starts[way].append(row["start_s"])
    for way, times in starts.items():
        print(f"{way}: {statistics.median(times):.2f} s (median of {len(times)})")


if __name__ == "__main__":
    main()
