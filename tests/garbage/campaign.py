"""Judges garbage candidates and holds the judge to what it promises of them.

    scripts/garbage [--count 1000] [--seed N] [--results FILE]

Candidates come from a seed (candidates.py) and are judged in batches, each with an honest kernel as
its last. Of every batch must hold: the judge ends with the exit code that its verdicts call for;
there is one verdict a candidate, as the schema says, with a message; the honest kernel is found
correct; the judge holds no descriptor of a candidate's; and no process, control group, mount or
file is left. Prints what does not hold and exits with 1 then. FILE gets a line a judgement.

No root is needed, and others may judge on the machine meanwhile: this process adopts the orphans of
its judges (PR_SET_CHILD_SUBREAPER), so all that descends from them is found below it.
"""

import argparse
import collections
import ctypes
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import jsonschema

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import candidates  # noqa: E402

ASSAY = pathlib.Path(os.environ.get("ASSAY_BINARY", ROOT / "build" / "release" / "assay"))
HONEST = ROOT / "kernels" / "softmax" / "naive.cpp"
PR_SET_CHILD_SUBREAPER = 36
BATCH = 20
BATCH_SECONDS_MAX = 900
LEFTOVER_SECONDS_MAX = 10
# src/cli/exit_code.h: the gravest of a call's outcomes, gravest first.
CODES = {
    "foul": 6,
    "crashed": 5,
    "timed_out": 5,
    "out_of_memory": 5,
    "build_failed": 4,
    "wrong": 3,
    "unsettled": 7,
    "correct": 0,
    "not_faster": 1,
    "weights_differ": 3,
    "slower": 1,
    "tie": 1,
    "faster": 0,
}
LACKING = 8  # this machine lacks what a candidate needs
GRAVEST_FIRST = [LACKING, 6, 5, 4, 3, 7, 1, 0]
SCHEMA = json.loads((ROOT / "docs" / "verdict.schema.json").read_text())


def adopt_orphans(yes):
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, int(yes), 0, 0, 0)


def descendants():
    """Processes below this one, by their command lines."""
    parents = collections.defaultdict(list)
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            stat = (entry / "stat").read_text(errors="replace")
            parents[int(stat[stat.rindex(")") + 2 :].split()[1])].append(int(entry.name))
        except (OSError, ValueError):
            continue
    found, waiting = {}, [os.getpid()]
    while waiting:
        for pid in parents[waiting.pop()]:
            waiting.append(pid)
            try:
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
            except OSError:
                continue
            found[pid] = words.replace(b"\0", b" ").decode(errors="replace")[:120]
    return found


def control_groups(judge):
    """Groups that this judge made: their names carry its pid."""
    found = []
    for folder, folders, _ in os.walk("/sys/fs/cgroup"):
        found += [f"{folder}/{name}" for name in folders if re.match(rf"assay-\d+-{judge}-", name)]
    return found


def mounts():
    return set(pathlib.Path("/proc/self/mountinfo").read_text().splitlines())


def foreign_descriptors(judge):
    """Open files of the judge's with a sandbox's paths: a candidate sent them."""
    found = []
    try:
        for entry in pathlib.Path(f"/proc/{judge}/fd").iterdir():
            target = os.readlink(entry)
            if target.startswith(("/candidate/", "/assay/")):
                found.append(target)
    except OSError:
        pass
    return found


class Leftovers:
    """What there is before a judgement, and what there is too much of after it."""

    def __init__(self, temporary):
        self._temporary = temporary
        self._mounts = mounts()
        self._processes = set(descendants())

    def _now(self, judge):
        processes = descendants()
        return (
            [f"process {processes[pid]}" for pid in processes if pid not in self._processes]
            + [f"control group {group}" for group in control_groups(judge)]
            + [f"mount {mount}" for mount in mounts() - self._mounts]
            + [f"file {path}" for path in self._temporary.iterdir()]
        )

    def after(self, judge):
        # The kernel ends the last process of a killed sandbox a moment after its parent is told.
        end = time.monotonic() + LEFTOVER_SECONDS_MAX
        while True:
            try:  # orphans that this process adopted
                while os.waitpid(-1, os.WNOHANG)[0] > 0:
                    pass
            except ChildProcessError:
                pass
            left = self._now(judge)
            if not left or time.monotonic() > end:
                return left
            time.sleep(0.1)


class Call:
    """One call of the judge over a batch of files; read as it prints."""

    def __init__(self, paths, home):
        temporary = home / "temporary"
        temporary.mkdir(exist_ok=True)
        leftovers = Leftovers(temporary)
        environment = dict(
            os.environ,
            TMPDIR=str(temporary),
            **{f"XDG_{name}_HOME": str(home / name) for name in ("CACHE", "STATE", "CONFIG")},
        )
        command = [str(ASSAY), "judge", "softmax", *paths, "--size", "tiny", "--jsonl", "--no-save"]
        command += ["--budget", "2", "--timeout", "2", "--build-timeout", "5"]
        self.events, self.strange, self.descriptors = [], [], []
        with open(home / "stderr", "w+b") as errors:
            judge = subprocess.Popen(
                command,
                cwd=home,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
            watchdog = threading.Timer(BATCH_SECONDS_MAX, judge.kill)
            watchdog.daemon = True
            watchdog.start()
            for line in judge.stdout:
                self._read(line, judge.pid)
            self.code = judge.wait()
            watchdog.cancel()
            errors.seek(0)
            self.stderr = errors.read().decode(errors="replace")
        self.left = leftovers.after(judge.pid)

    def _read(self, line, judge):
        try:
            event = json.loads(line.decode())
        except ValueError:
            self.strange.append(line[:200])
            return
        self.events.append(event)
        if event.get("event") == "verdict":
            self.descriptors += foreign_descriptors(judge)

    @property
    def verdicts(self):
        """One for each candidate in turn; None for one that this machine lacks something for, such
        as a newer PyTorch.
        """
        told = (event for event in self.events if event.get("event") in ("verdict", "error"))
        return [event.get("verdict") for event in told]


def faults_of_verdict(verdict, path, content):
    """What is wrong with one verdict."""
    found = [error.message[:200] for error in VALIDATOR.iter_errors(verdict)]
    if not verdict["message"].strip():
        found.append("it has no message")
    if verdict["candidate"]["path"] != path:
        found.append(f"it is of {verdict['candidate']['path']}")
    if verdict["candidate"]["hash"] != hashlib.sha256(content).hexdigest():
        found.append("it is of other content")
    return found


VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def faults_of_call(call, paths):
    """What is wrong with a whole call, its verdicts apart."""
    found = [f"left: {thing}" for thing in call.left]
    found += [f"not an event: {line!r}" for line in call.strange]
    found += [f"the judge holds {target}" for target in sorted(set(call.descriptors))]
    wanted = {CODES[verdict["outcome"]] if verdict else LACKING for verdict in call.verdicts}
    expected = next((code for code in GRAVEST_FIRST if code in wanted), None)
    if len(call.verdicts) != len(paths):
        found.append(f"{len(call.verdicts)} verdicts on {len(paths)} candidates")
    if call.code != expected:
        found.append(f"exit code {call.code}, where the verdicts call for {expected}")
    if found:
        found.append(f"stderr: {call.stderr[-600:]}")
    return found


def judge_batch(indices, seed, home):
    """Judges these candidates; yields a record each, with `faults` where something is wrong."""
    made = [candidates.make(seed, index) for index in indices]
    contents = [content for *_, content in made] + [HONEST.read_bytes()]
    names = [f"{index}{suffix}" for index, (_, _, suffix, _) in zip(indices, made)] + ["honest.cpp"]
    for name, content in zip(names, contents):
        (home / name).write_bytes(content)
    call = Call(names, home)
    faults = faults_of_call(call, names)
    verdicts = call.verdicts + [None] * (len(names) - len(call.verdicts))
    honest = verdicts[-1] or {"outcome": "no verdict", "message": "", "correctness": None}
    if not (honest["correctness"] or {}).get("passed"):
        faults.append(f"the honest kernel: {honest['outcome']}: {honest['message']}")
    for index, (kind, what, _, content), name, verdict in zip(indices, made, names, verdicts):
        if verdict:
            own = faults_of_verdict(verdict, name, content)
        else:  # words of another file's imports make sense in Python alone
            own = [] if name.endswith(".py") and call.code == LACKING else ["no verdict"]
        yield {
            "seed": f"{seed} {index}",
            "kind": kind,
            "what": what,
            "size_bytes": len(content),
            "outcome": verdict["outcome"] if verdict else None,
            "rule": verdict["foul"]["rule"] if verdict and verdict["foul"] else None,
            "exit": call.code,
            "faults": own + (faults if index == indices[-1] else []),
        }
    for name in names:
        (home / name).unlink()


def run(indices, seed, batch=BATCH):
    """Records of all these candidates, batch by batch."""
    adopt_orphans(True)
    home = pathlib.Path(tempfile.mkdtemp(prefix="garbage-"))
    try:
        for begin in range(0, len(indices), batch):
            yield from judge_batch(indices[begin : begin + batch], seed, home)
    finally:
        shutil.rmtree(home, ignore_errors=True)
        adopt_orphans(False)


def summary(records, seed, seconds):
    outcomes = collections.Counter(record["outcome"] for record in records)
    return {
        "summary": True,
        "seed": seed,
        "judgements": len(records),
        "outcomes": dict(sorted(outcomes.items(), key=lambda item: -item[1])),
        "faults": sum(len(record["faults"]) for record in records),
        "seconds": round(seconds),
    }


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    parser.add_argument("--only", type=int, help="judge this one candidate of the seed")
    parser.add_argument("--show", action="store_true", help="print that candidate, judge nothing")
    parser.add_argument("--results", type=pathlib.Path, help="a line a judgement goes here")
    return parser.parse_args()


def main():
    asked = arguments()
    indices = [asked.only] if asked.only is not None else list(range(asked.count))
    if asked.show:
        for index in indices:
            sys.stdout.buffer.write(candidates.make(asked.seed, index)[3])
        return 0
    print(f"garbage: {len(indices)} candidates, seed {asked.seed}", flush=True)
    begin, records = time.monotonic(), []
    results = open(asked.results, "a", encoding="utf-8") if asked.results else None
    for record in run(indices, asked.seed):
        records.append(record)
        if results:
            results.write(json.dumps(record) + "\n")
            results.flush()
        for fault in record["faults"]:
            print(f"{record['seed']} ({record['kind']}, {record['what']}): {fault}", flush=True)
        if len(records) % 100 == 0:
            print(f"garbage: {len(records)} judged", file=sys.stderr, flush=True)
    total = summary(records, asked.seed, time.monotonic() - begin)
    if results:
        results.write(json.dumps(total) + "\n")
        results.close()
    print(json.dumps(total))
    return 1 if total["faults"] else 0


if __name__ == "__main__":
    sys.exit(main())
