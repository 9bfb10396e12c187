#!/usr/bin/env python3
"""Stands in for the program `assay` in tests: commands that do what a problem's name says.

$FAKE_FOLDER is a folder of the test's: what happens once leaves a file there, and each call appends
its arguments to `calls`.
"""

import json
import os
import pathlib
import queue
import signal
import sys
import threading
import time

FOLDER = pathlib.Path(os.environ["FAKE_FOLDER"])
WAITS_S = 60


def verdict(candidate, outcome="correct"):
    """The least of a record that the package reads."""
    return {
        "schema": "assay.verdict/1",
        "id": "0123456789ab",
        "created": "2026-01-02T03:04:05Z",
        "outcome": outcome,
        "message": f"{outcome}, as was asked",
        "cause": None,
        "line": None,
        "problem": {"name": "fake"},
        "candidate": {"path": candidate.get("path") or candidate["name"]},
        "correctness": None,
        "speed": None,
        "foul": None,
        "roofline": None,
        "cost": {"total_s": 0.5},
        "log": "",
    }


def say(event, **fields):
    line = {"schema": "assay.worker/1", "event": event, **fields}
    print(json.dumps(line), flush=True)


def first_time(what):
    """Whether this has not happened before, in any process."""
    try:
        (FOLDER / what).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


class FakeWorker:
    """Reads requests in one thread, and serves them in another."""

    def __init__(self):
        self.requests = queue.Queue()
        self.cancelled = set()

    def read(self):
        for line in sys.stdin:
            request = json.loads(line)
            if request["request"] == "cancel":
                self.cancelled.add(request["of"])
            else:
                self.requests.put(request)
        self.requests.put(None)

    def serve(self):
        threading.Thread(target=self.read, daemon=True).start()
        say("ready", version="fake")
        while (request := self.requests.get()) is not None:
            with open(FOLDER / "requests", "a", encoding="utf-8") as file:
                file.write(json.dumps(request) + "\n")
            self.answer(request, request["id"], request["terms"]["problem"])

    def answer(self, request, number, problem):
        if problem == "garbage":
            print("no JSON", flush=True)
        elif problem == "usage":
            say("error", id=number, kind="usage", message="no problem 'usage'")
        elif problem == "no_device":
            say("error", id=number, kind="environment", code=problem, message="no CUDA driver")
        elif problem == "lacks":
            say("error", id=number, kind="environment", message="no Python with PyTorch")
        elif problem == "environment" or problem == "once" and first_time("environment"):
            say("progress", id=number, stage="starting", text="", fraction=0)
            say("error", id=number, kind="environment", message="the disk is full")
        elif problem == "hangs" and not self.is_cancelled(number):
            say("error", id=number, kind="interrupted", message="nobody cancelled")
        elif number in self.cancelled:
            say("error", id=number, kind="interrupted", message="cancelled")
        elif problem == "deaf":
            say("progress", id=number, stage="speed", text="deaf", fraction=0)
            time.sleep(WAITS_S)
        elif request["request"] == "describe":
            line = "input x float32[2]"
            say("description", id=number, problem=problem, device="cpu", set={}, signature=[line])
            say("done", id=number)
        else:
            self.judge(request, number, problem)

    def is_cancelled(self, number):
        say("progress", id=number, stage="correctness", text="waiting", fraction=0, candidate=0)
        for _ in range(WAITS_S * 100):
            if number in self.cancelled:
                return True
            time.sleep(0.01)
        return False

    def judge(self, request, number, problem):
        outcome = "correct" if request["request"] == "check" else "faster"
        for place, candidate in enumerate(request["candidates"]):
            say("progress", id=number, stage="speed", text="", fraction=0.5, candidate=place)
            if problem == "unjudged" and place == 0:
                say("unjudged", id=number, candidate=0, message="needs CUDA")
                continue
            say("verdict", id=number, candidate=place, verdict=verdict(candidate, outcome))
            if problem == "dies" or problem == "dies_once" and first_time("death"):
                os.kill(os.getpid(), signal.SIGKILL)
        if problem == "unjudged":
            say("error", id=number, kind="environment", message="a.cu needs CUDA")
        else:
            say("done", id=number)


def environment(arguments):
    """assay env."""
    if "broken" in arguments:
        sys.exit(8)
    print(json.dumps({"event": "ready", "problems": arguments}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if request["request"] == "die":
            sys.exit(3)
        event = {"event": "error", "kind": "usage", "message": "no such request"}
        if request["request"] == "reset":
            event = {"event": "episode", "episode": "e1", "seed": request["seed"]}
        print(json.dumps(event), flush=True)


def run(arguments):
    """assay run: a row for each file of the folder, and an error for the second."""
    folder = pathlib.Path(arguments[arguments.index("--results") + 1])
    if "--size" in arguments and "none" in arguments:
        print("there is no size none", file=sys.stderr)
        sys.exit(2)
    row = {"schema": "assay.run/1", "problem": "fake", "level": 0, "number": 0, "sample": 0}
    with open(folder / "verdicts.jsonl", "a", encoding="utf-8") as file:
        for outcome in ("slower", "faster"):
            judged = verdict({"path": "a.cpp"}, outcome)
            file.write(json.dumps({**row, "candidate": "a.cpp", "verdict": judged}) + "\n")
        error = {"kind": "environment", "message": "no CUDA"}
        file.write(json.dumps({**row, "candidate": "b.cu", "error": error}) + "\n")
    sys.exit(2 if "--partly" in arguments else 0)


def main():
    command, *arguments = sys.argv[1:]
    with open(FOLDER / "calls", "a", encoding="utf-8") as file:
        file.write(json.dumps(sys.argv[1:]) + "\n")
    if os.environ.get("FAKE_FAILS"):
        print("bubblewrap is missing", file=sys.stderr)
        sys.exit(8)
    if command == "worker" and os.environ.get("FAKE_DIES_EARLY") and first_time("early"):
        os.kill(os.getpid(), signal.SIGKILL)
    if command == "worker":
        FakeWorker().serve()
    elif command == "env":
        environment(arguments)
    elif command == "run":
        run(arguments)
    elif command == "score":
        lines = pathlib.Path(arguments[0]).read_text(encoding="utf-8").splitlines()
        print(json.dumps({"schema": "assay.score/1", "verdicts": len(lines)}))
    elif command == "problems":
        print(json.dumps([{"name": "fake", "level": 1, "mechanism": "none", "sizes": {}}]))
    elif command == "sleep":
        (FOLDER / "sleeper").write_text(str(os.getpid()))
        time.sleep(WAITS_S)


main()
