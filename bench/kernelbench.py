#!/usr/bin/env python3
"""Judges KernelBench-form files that were not written for Assay, unmodified, against themselves.

    bench/kernelbench.py FOLDER --every 5 --output bench/results/MACHINE/kernelbench.jsonl

For each chosen problem file under FOLDER (its subfolders are levels) the candidate is the
reference's own Python form: `class Model` renamed to `class ModelNew`. Module-level integers that
make a problem large are lowered with `--set`: batch sizes to 2, other constants of 512 and more to
an eighth, again and again until it runs within the time. One line a file: what was set, the exit
code, the outcome. With --speed the whole verdict is asked for, else correctness alone.
"""
import argparse
import ast
import datetime
import hashlib
import json
import pathlib
import re
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BATCH = re.compile(r"batch_?size|^[nb]$", re.IGNORECASE)


def integer(node):
    """The value of an integer literal or a product of some, else None."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        left, right = integer(node.left), integer(node.right)
        return None if left is None or right is None else left * right
    return None


def integers(source):
    """Module-level names that are bound to an integer, `height, width = 64, 64` among them."""
    found = {}
    for node in ast.parse(source).body:
        if not isinstance(node, ast.Assign):
            continue
        names, values = node.targets[0], node.value
        several = isinstance(names, ast.Tuple) and isinstance(values, ast.Tuple)
        pairs = zip(names.elts, values.elts) if several else [(names, values)]
        for name, value in pairs:
            if isinstance(name, ast.Name) and integer(value) is not None:
                found[name.id] = integer(value)
    return found


def smaller(source, step):
    """Settings that make the problem smaller, by a factor of eight a step."""
    settings = {}
    for name, value in integers(source).items():
        if BATCH.search(name) and value > 2:
            settings[name] = 2
        elif value >= 512:
            settings[name] = max(64, value // 8**step)
    return settings


def judge(assay, path, candidate, settings, extra, timeout_s):
    command = [assay, "judge", str(path), str(candidate), "--json", "-q", "--no-save", *extra]
    for name, value in settings.items():
        command += ["--set", f"{name}={value}"]
    begin = time.monotonic()
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        return {
            "exit": None,
            "outcome": None,
            "message": f"took over {timeout_s} s",
            "seconds": timeout_s,
        }
    verdict = json.loads(process.stdout) if process.stdout else {}
    result = {
        "exit": process.returncode,
        "outcome": verdict.get("outcome"),
        "message": (verdict.get("message") or process.stderr.strip())
        .replace(f"{path.parent}/", "")
        .replace(f"{candidate.parent}/", "")[-400:],
        "seconds": round(time.monotonic() - begin, 1),
    }
    if verdict:
        result["pytorch"] = verdict["toolchain"]["pytorch"]
        result["cores"] = verdict["machine"]["cores"]
    if verdict.get("correctness"):
        result["passed"] = verdict["correctness"]["passed"]
        result["error_ratio"] = verdict["correctness"]["error_ratio"]
        result["note"] = verdict["correctness"]["note"]
    if verdict.get("speed"):
        result["eager"] = verdict["speed"]["baselines"]["eager"]
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--every", type=int, default=5, help="take every n-th file")
    parser.add_argument("--offset", type=int, default=0, help="beginning with this one")
    parser.add_argument("--levels", nargs="+", default=["level1", "level2", "level3"])
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for one judgement")
    parser.add_argument("--output", required=True, type=pathlib.Path)
    parser.add_argument("--assay", default=str(ROOT / "build" / "release" / "assay"))
    options = parser.parse_args()
    extra = ["--timeout", "30"] + ([] if options.speed else ["--correctness-only"])
    options.output.parent.mkdir(parents=True, exist_ok=True)
    counts = {}
    files = [path for level in options.levels for path in (options.folder / level).glob("*.py")]
    files.sort(key=lambda path: hashlib.sha256(path.name.encode()).digest())  # levels mixed
    for path in files[options.offset :: options.every]:
        level = path.parent.name
        source = path.read_text()
        with tempfile.TemporaryDirectory() as folder:
            candidate = pathlib.Path(folder) / "copy.py"
            candidate.write_text(re.sub(r"\bModel\b(?=[(,:])", "ModelNew", source))
            for step in (1, 2, 3):
                settings = smaller(source, step)
                result = judge(options.assay, path, candidate, settings, extra, options.timeout)
                if result["exit"] not in (None, 8):
                    break
        line = {
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "file": f"{level}/{path.name}",
            "set": settings,
            **result,
        }
        with options.output.open("a") as file:
            file.write(json.dumps(line) + "\n")
        key = "correct" if result.get("passed") else f"exit {result['exit']}"
        counts[key] = counts.get(key, 0) + 1
        print(line["file"], settings, key, result["outcome"], result["seconds"], flush=True)
    print(counts)


if __name__ == "__main__":
    main()
