"""What many verdicts through one assay.Session leave in memory, descriptors and processes.

    python3 bench/python_session.py --out ROWS.jsonl [--verdicts 10000] [--kill-at 5000]

Requests are correctness alone, at `tiny` and one size, of 16 candidates each, over three problems
in turn. Every 500 verdicts a row has the client's and the worker's memory, descriptors and
processes; `worker_tree` counts the worker and all below it, and its memory is each process's share
(PSS). At --kill-at verdicts the worker is killed by SIGKILL while it serves a request.
"""
import argparse
import os
import pathlib
import signal
import sys
import time
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

import assay  # noqa: E402
import rows  # noqa: E402

PROGRAM = os.environ.get("ASSAY_BINARY", str(ROOT / "build" / "release" / "assay"))
PROBLEMS = ("softmax", "layer_norm", "gelu")
BATCH = 16
ROW_EVERY = 500


def tree_of(pid):
    """The process and all below it."""
    parents = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
            except OSError:
                continue
            parents.setdefault(int(status[1]), []).append(int(entry.name))
    found, todo = [], [pid]
    while todo:
        found.append(todo.pop())
        todo += parents.get(found[-1], [])
    return found


def memory_mib(pid, field):
    """A field of smaps_rollup, or 0 for a process that has ended."""
    try:
        text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith(field)) / 1024


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def measured(session):
    me, worker = os.getpid(), session.worker_pid
    below = tree_of(worker)
    return {
        "client_mib": round(memory_mib(me, "Pss:"), 1),
        "client_descriptors": descriptors(me),
        "client_threads": len(os.listdir("/proc/self/task")),
        "worker_mib": round(memory_mib(worker, "Pss:"), 1),
        "worker_descriptors": descriptors(worker),
        "worker_tree_mib": round(sum(memory_mib(pid, "Pss:") for pid in below), 1),
        "worker_tree_processes": len(below),
    }


def candidates_of(problem, number):
    """Files of the problem's kernels, right and wrong ones in turn."""
    files = sorted((ROOT / "kernels" / problem).glob("*.cpp"))
    return [files[(number + i) % len(files)] for i in range(BATCH)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--verdicts", type=int, default=10_000)
    parser.add_argument("--kill-at", type=int, default=5_000)
    options = parser.parse_args()
    os.environ["ASSAY_JUDGE_COMMIT"] = rows.judge_commit()  # as it is when the program starts
    judged, outcomes, told, due = 0, {}, [], ROW_EVERY
    begin = time.monotonic()
    with assay.Session(program=PROGRAM, size="tiny", threads=1, one_size=True) as session:

        def watch(event):
            if judged >= options.kill_at > 0 and not killed and isinstance(event, assay.Judged):
                killed.append(session.worker_pid)
                os.kill(session.worker_pid, signal.SIGKILL)

        killed = []
        for number in range(-(-options.verdicts // BATCH)):
            problem = PROBLEMS[number % len(PROBLEMS)]
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", assay.WorkerTrouble)
                asked = candidates_of(problem, number)
                for verdict in session.check(problem, asked, on_event=watch):
                    judged += 1
                    outcomes[verdict.outcome.value] = outcomes.get(verdict.outcome.value, 0) + 1
            told += [str(each.message) for each in caught]
            if judged >= due:
                due += ROW_EVERY
                seconds = round(time.monotonic() - begin, 1)
                row = {"verdicts": judged, "seconds": seconds, **measured(session)}
                rows.append(options.out, {**row, "outcomes": dict(outcomes), "told": list(told)})
                print(row, flush=True)


if __name__ == "__main__":
    main()
