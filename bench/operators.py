#!/usr/bin/python3
"""Audits every reference of a KernelBench checkout at the small sizes of scripts/kernelbench: which
operators of forward gate 1's values see.

    bench/operators.py DIR --out bench/results/cpu-2core/kernelbench_operators.jsonl
    bench/operators.py --summary bench/results/cpu-2core/kernelbench_operators.jsonl

A file that has a row already is not audited again: delete its row to do so. --summary prints how
many operators are seen, by level, and the table of docs/coverage.md.
"""
import argparse
import collections
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import subprocess
import tomllib

import rows

ASSAY = os.environ.get("ASSAY_BINARY", str(rows.ROOT / "build" / "release" / "assay"))
LEVELS = ("1", "2", "3")


def kernelbench_script():
    """scripts/kernelbench, which has no suffix, as a module."""
    path = str(rows.ROOT / "scripts" / "kernelbench")
    loader = importlib.machinery.SourceFileLoader("kernelbench_script", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def audit(path, settings, timeout_s):
    """The audit of one file as `assay audit --json` has it; {"error"} without one."""
    command = [ASSAY, "audit", str(path), "--json", "-q", "--threads", "1", "--jobs", "1"]
    for name, value in settings.items():
        command += ["--set", f"{name}={value}"]
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s)
        return json.loads(process.stdout)["problems"][0]
    except subprocess.TimeoutExpired:
        return {"error": f"not audited within {timeout_s:g} s"}
    except (ValueError, LookupError):
        return {"error": process.stderr.strip()[-200:] or f"exit code {process.returncode}"}


def row_of(file, settings, found):
    """What is kept of an audit."""
    operators = found.get("operators", [])
    count = collections.Counter(one["result"] for one in operators)
    unseen = [one for one in operators if one["result"] == "unseen"]
    return {
        "file": file,
        "set": settings,
        "error": found["error"],
        "seen": count["seen"],
        "unseen": [{key: one[key] for key in ("name", "line", "mutant", "mend")} for one in unseen],
        "redundant": count["redundant"],
        "findings": [finding["finding"] for finding in found.get("findings", [])],
        "seconds": round(found.get("seconds", 0), 1),
    }


def audit_all(options):
    script = kernelbench_script()
    table = tomllib.loads(script.SIZES.read_text())
    done = {row["file"] for row in rows.read(options.out)}
    for level, path in script.find_files(options.folder, LEVELS, options.only):
        file = f"level{level}/{path.name}"
        if file in done:
            continue
        for settings in script.settings_of(level, path.stem, path.read_text(), table)[0]:
            found = audit(path, settings, options.timeout)
            if not found["error"]:
                break
        row = row_of(file, settings, found)
        if row["error"]:
            row["error"] = row["error"].replace(f"{path.parent}/", "")
        rows.append(options.out, row)
        print(file, row["error"] or f"{row['seen']} seen, {len(row['unseen'])} unseen", flush=True)


def summary(path):
    """Prints a line a level, and one row of a table for each file with an unseen operator."""
    found = rows.read(path)
    for level in (*LEVELS, ""):
        some = [row for row in found if row["file"].startswith(f"level{level}")]
        seen, unseen = sum(row["seen"] for row in some), sum(len(row["unseen"]) for row in some)
        failed = sum(bool(row["error"]) for row in some)
        print(
            f"level {level or 'all'}: {len(some)} files, {failed} not audited, {seen} of "
            f"{seen + unseen} operators seen ({100 * seen / max(1, seen + unseen):.1f}%)"
        )
    print("\n| file | not seen | values that would show it |\n|---|---|---|")
    for row in found:
        for one in row["unseen"]:
            print(f"| {row['file']} | {one['mutant']} | {one['mend'] or 'none found'} |")
    for row in found:
        if row["error"]:
            print(f"\n{row['file']}: {row['error']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path, nargs="?", help="a checkout of KernelBench")
    parser.add_argument("--out", type=pathlib.Path, help="where rows are appended")
    parser.add_argument("--only", default="*", help="files to audit, as level2/23_*")
    parser.add_argument("--timeout", type=float, default=300, help="of one file [s]")
    parser.add_argument("--summary", type=pathlib.Path, metavar="ROWS", help="print what rows say")
    options = parser.parse_args()
    if options.summary:
        summary(options.summary)
    elif options.folder and options.out:
        audit_all(options)
    else:
        parser.error("name a folder and --out, or --summary")


if __name__ == "__main__":
    main()
