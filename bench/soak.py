#!/usr/bin/env python3
"""A soak: hundreds of judgements, good candidates and bad ones, and what they leave behind.

    bench/soak.py --count 500 --output bench/results/MACHINE/soak.jsonl

Judges the shipped softmax kernels and candidates that crash, hang, fork, allocate everything, print
for ever or write out of bounds, several a call and in two processes at once, and kills every tenth
call outright. Counts, before and after, the processes, control groups, mounts, open memory files,
System V shared memory, files under /tmp and /dev/shm, and the machine's used memory. One line with
both goes to the output. Exit code 1 when anything is left or a verdict is not the expected one.
"""
import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROBLEM = str(ROOT / "problems" / "level1" / "softmax.py")
KERNELS = ROOT / "kernels" / "softmax"

sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from traces import sandbox_traces  # noqa: E402

HEAD = "#include <assay/kernel.h>\n#include <cstdio>\n#include <cstdlib>\n#include <unistd.h>\n"
ENTRY = "ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<float, 2> y) {%s}\n"
# name: (body, outcomes that are right)
BAD = {
    "crash": ("*(volatile int*)16 = 1;", {"crashed"}),
    "hang": ("for (volatile int i = 0;; ++i) {}", {"timed_out"}),
    "fork": ("if (fork() == 0) for (;;) {}", {"foul", "crashed"}),
    "memory": ("for (;;) *(volatile char*)malloc(1 << 16) = 1;", {"out_of_memory", "crashed"}),
    # 17 MB: more than a busy machine prints within the limit of a call.
    "print": (
        'for (int i = 0; i < 1 << 20; ++i) std::puts("0123456789012345");',
        {"wrong", "timed_out"},
    ),
    "bounds": ("for (long i = -64; i < 1 << 16; ++i) y.data()[i] = 0;", {"wrong", "crashed"}),
    "exit": ("std::exit(0);", {"crashed"}),
    "nothing": ("(void)x; (void)y;", {"wrong"}),
    "input": ("const_cast<float*>(x.data())[0] = 1; (void)y;", {"crashed"}),
    "typo": ("return nonsense;", {"build_failed"}),
}
CORRECT = {"faster", "slower", "tie", "unsettled"}


def census():
    """What is there now that a judgement could leave."""
    memory_files = 0
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            for descriptor in (entry / "fd").iterdir():
                memory_files += os.readlink(descriptor).startswith("/memfd:assay")
        except OSError:
            continue
    temporary = [
        path.name
        for folder in ("/tmp", "/dev/shm")
        for path in pathlib.Path(folder).iterdir()
        if "assay" in path.name or "bwrap" in path.name
    ]
    return {
        "sandboxes_and_control_groups": sorted(sandbox_traces()),
        "mounts": len(pathlib.Path("/proc/self/mounts").read_text().splitlines()),
        "memory_files": memory_files,
        "shared_memory_segments": len(pathlib.Path("/proc/sysvipc/shm").read_text().splitlines()),
        "temporary_files": temporary,
    }


def used_memory_bytes():
    facts = dict(line.split(":") for line in pathlib.Path("/proc/meminfo").read_text().splitlines())
    number = lambda name: int(facts[name].split()[0]) * 1024
    return number("MemTotal") - number("MemAvailable")


def write_candidates(folder):
    """Paths and the outcomes that are right for each."""
    candidates = {str(KERNELS / "naive.cpp"): CORRECT, str(KERNELS / "fused.cpp"): CORRECT}
    candidates[str(KERNELS / "off_by_one.cpp")] = {"wrong"}
    candidates[str(KERNELS / "model_new.py")] = CORRECT
    for name, (body, outcomes) in BAD.items():
        path = folder / f"{name}.cpp"
        path.write_text(HEAD + ENTRY % body)
        candidates[str(path)] = outcomes
    return candidates


def judge(assay, candidates, chosen, kill_after_s):
    """One call; returns a list of (path, outcome), and None for what a killed call did not say."""
    command = [assay, "judge", PROBLEM, *chosen, "--size", "tiny", "--json", "-q", "--no-save"]
    command += ["--timeout", "1", "--memory", "512M"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    if kill_after_s is not None:
        time.sleep(kill_after_s)
        process.kill()
        process.wait()
        return [(path, None) for path in chosen]
    out, _ = process.communicate(timeout=900)
    verdicts = json.loads(out) if out else []
    verdicts = verdicts if isinstance(verdicts, list) else [verdicts]
    said = [(verdict["candidate"]["path"], verdict["outcome"]) for verdict in verdicts]
    return said + [(path, "no verdict") for path in chosen[len(said) :]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=500, help="judgements")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--assay", default=str(ROOT / "build" / "release" / "assay"))
    options = parser.parse_args()
    chance = random.Random(options.seed)
    before, memory_before = census(), used_memory_bytes()
    begin = time.monotonic()
    outcomes, wrong = {}, []
    with tempfile.TemporaryDirectory(prefix="soak") as folder:
        candidates = write_candidates(pathlib.Path(folder))
        calls = []
        planned = 0
        while planned < options.count:
            size = min(chance.randint(4, 16), options.count - planned)
            chosen = chance.choices(list(candidates), k=size)
            kill_after_s = chance.uniform(1, 10) if len(calls) % 10 == 9 else None
            calls.append((chosen, kill_after_s))
            planned += size if kill_after_s is None else 0
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            runs = [
                pool.submit(judge, options.assay, candidates, chosen, kill)
                for chosen, kill in calls
            ]
            for run in runs:
                for path, outcome in run.result():
                    if outcome is None:
                        continue
                    outcomes[outcome] = outcomes.get(outcome, 0) + 1
                    if outcome not in candidates[path]:
                        wrong.append([os.path.basename(path), outcome])
    # The control groups of a killed judge are removed by the next one.
    judge(options.assay, {}, [str(KERNELS / "off_by_one.cpp")], None)
    time.sleep(1)
    after = census()
    left = {name: after[name] for name in before if after[name] != before[name]}
    line = {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "judgements": sum(outcomes.values()),
        "calls": len(calls),
        "killed_calls": sum(kill is not None for _, kill in calls),
        "seconds": round(time.monotonic() - begin, 1),
        "outcomes": outcomes,
        "not_as_expected": wrong,
        "before": before,
        "after": after,
        "left": left,
        "used_memory_growth_bytes": used_memory_bytes() - memory_before,
    }
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        with options.output.open("a") as file:
            file.write(json.dumps(line) + "\n")
    print(json.dumps(line, indent=1))
    sys.exit(1 if left or wrong else 0)


if __name__ == "__main__":
    main()
