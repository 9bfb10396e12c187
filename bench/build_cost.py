#!/usr/bin/python3
"""What a build costs, by commit: builds the committed tree in a new folder, without ccache.

    bench/build_cost.py [--target judge] [--why TEXT] [--output FILE]

Appends one line of JSON: the commit, the target ('all' or 'judge'), CPU seconds and seconds of the
build, objects compiled, lines of source, and the machine. Compares it with the last line of the
same target and machine: a build that takes over 3% more CPU seconds needs --why, and else ends with
exit code 1. Run it on a quiet machine.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import rows

ROOT = pathlib.Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "bench" / "results" / "cpu-2core" / "build_cost.jsonl"
GROWTH_MAX = 1.03
MACHINE = ("cores", "cpu", "compiler")  # rows of one machine are compared


def machine():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    model = re.search(r"^model name\s*:\s*(.*)$", text, re.MULTILINE)
    version = subprocess.check_output(["g++", "-dumpfullversion"], text=True).strip()
    return {
        "cores": len(os.sched_getaffinity(0)),
        "cpu": model.group(1) if model else "unknown",
        "compiler": f"g++ {version}",
    }


def compared(earlier, row):
    """The last earlier row of the same target and machine, or None."""
    same = [
        other
        for other in earlier
        if other["target"] == row["target"] and all(other[key] == row[key] for key in MACHINE)
    ]
    return same[-1] if same else None


def says(before, row):
    """(text, whether the row may stand) about a row and the one before it."""
    if before is None:
        return f"{row['cpu_s']} CPU seconds; nothing to compare with", True
    ratio = row["cpu_s"] / before["cpu_s"]
    text = f"{row['cpu_s']} CPU seconds, {ratio:.3f} times those of {before['commit'][:8]}"
    if ratio <= GROWTH_MAX or row["why"]:
        return text, True
    return f"{text}: over {GROWTH_MAX}; take something away, or say why with --why", False


def measure(target):
    """Builds HEAD in a new folder."""
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder) / "assay"
        subprocess.run(["git", "clone", "-q", str(ROOT), str(tree)], check=True)
        environment = dict(os.environ, CCACHE_DISABLE="1")
        command = ["scripts/build", "release", *([] if target == "all" else [target])]
        began, before = time.monotonic(), os.times()
        subprocess.run(command, cwd=tree, env=environment, check=True)
        wall_s, after = time.monotonic() - began, os.times()
        cpu_s = sum(after[2:4]) - sum(before[2:4])
        log = (tree / "build" / "release" / ".ninja_log").read_text().splitlines()
        sources = [tree / name for name in git("ls-files", "src", "host")]
        lines = sum(
            len(path.read_bytes().splitlines())
            for path in sources
            if path.suffix in (".cc", ".h", ".py")
        )
    return {
        "cpu_s": round(cpu_s),
        "wall_s": round(wall_s),
        "objects": sum(line.split("\t")[3].endswith(".o") for line in log if "\t" in line),
        "lines": lines,
    }


def git(*arguments):
    return subprocess.check_output(["git", "-C", str(ROOT), *arguments], text=True).splitlines()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", choices=("all", "judge"), default="all")
    parser.add_argument("--why", default="", help="why it takes over 3%% more")
    parser.add_argument("--output", metavar="FILE", type=pathlib.Path, default=OUTPUT)
    options = parser.parse_args()
    row = {
        "commit": git("rev-parse", "HEAD")[0],
        "target": options.target,
        **measure(options.target),
        "why": options.why,
        **machine(),
    }
    text, stands = says(compared(rows.read(options.output), row), row)
    rows.append(options.output, row)
    print(f"{options.target}: {text}; {row['wall_s']} s, {row['objects']} objects")
    return 0 if stands else 1


if __name__ == "__main__":
    sys.exit(main())
