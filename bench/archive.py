"""What the archive takes: appends a second, and commands on many records.

    python3 bench/archive.py --out ROWS.jsonl [--records 1000000] [--folder /var/tmp]

Runs bench/archive_bench on a new file in the folder, 3 GB for a million records, then commands of
`assay archive` on it, 11 times each. Appends a row a case; seconds are medians.
"""
import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "release"
REPETITIONS = 11


def timed(words):
    """Median seconds of a command, and its lines of output."""
    seconds = []
    for _ in range(REPETITIONS):
        begin = time.perf_counter()
        ran = subprocess.run(list(map(str, words)), stdout=subprocess.PIPE, text=True, check=True)
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds), ran.stdout.splitlines()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", required=True)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--folder", default="/var/tmp")
    arguments = parser.parse_args()
    commit = os.environ.get("ASSAY_JUDGE_COMMIT") or subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"],
        stdout=subprocess.PIPE, text=True, check=True,
    ).stdout.strip()
    head = {"judge": commit, "cores": os.cpu_count(),
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")}

    def keep(row):
        with open(arguments.out, "a", encoding="utf-8") as out:
            out.write(json.dumps(head | row) + "\n")
        print(row)

    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        archive = pathlib.Path(folder) / "archive.sqlite"
        ran = subprocess.run([BUILD / "bench" / "archive_bench", archive, str(arguments.records)],
                             stdout=subprocess.PIPE, text=True, check=True)
        for line in ran.stdout.splitlines():
            row = json.loads(line)
            keep(row | {"per_s": round(row["records"] / max(row["seconds"], 1e-9))})
        of = ["--archive", archive]
        listing = timed([BUILD / "assay", "archive", "list", "--limit", "1", *of])[1][0]
        commands = {
            "list": ["list"],
            "list of a problem": ["list", "--problem", "problem_7"],
            "list of a kind": ["list", "--kind", "result"],
            "list of searches": ["list", "--kind", "search"],
            "show": ["show", listing.split()[3]],
        }
        size = archive.stat().st_size
        for name, words in commands.items():
            seconds, _ = timed([BUILD / "assay", "archive", *words, *of])
            keep({"what": name, "records": arguments.records, "bytes": size, "seconds": seconds})


if __name__ == "__main__":
    main()
