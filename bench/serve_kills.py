"""Kills a server and its runners under load: no accepted job may be lost, or end twice.

Submitters send jobs with a key of their own until the server has answered. Scripted runners take
jobs over the same routes as `assay worker --server`, and end them with a verdict that was measured
earlier, on the job's source. They are killed in the midst of it: they forget what they had. With
--workers real ones judge jobs beside them. The server and these workers are killed by SIGKILL at
random moments and started again. At the end all jobs are waited for, and the database and the
archive are read:

    bench/serve_kills.py --program build/release/assay --kills 1000 --workers 1 --out kills.jsonl

Exit code 1: a job was lost, ended twice or not at all, or its verdict is not in the archive once.
"""

import argparse
import json
import pathlib
import random
import signal
import sqlite3
import subprocess
import tempfile
import threading
import time

from rows import append
from serve_client import PROBLEM, Client, Server, verdict_on


class Campaign:
    def __init__(self, server, arguments):
        self.server, self.arguments = server, arguments
        self.random = random.Random(arguments.seed)
        self.over = threading.Event()  # no further submissions or kills
        self.done = threading.Event()
        self.lock = threading.Lock()
        self.accepted = {}  # job -> key
        self.counts = {"server_kills": 0, "worker_kills": 0, "runner_kills": 0, "not_counted": 0}
        self.numbers = iter(range(1, 1 << 60))

    def count(self, name):
        with self.lock:
            self.counts[name] += 1

    def submit(self, token, name):
        client = Client(self.server.port, token)
        number = 0
        while not self.over.is_set():
            number += 1
            body = {
                "problem": PROBLEM,
                "size": "tiny",
                "name": "mine.cpp",
                "source": f"// {name} {number}\n",
                "key": f"{name} {number}",
            }
            status, reply = client.ask_until_answered("POST", "/api/jobs", body)
            if status == 429:
                time.sleep(0.1)
                number -= 1
                continue
            if status not in (200, 202):
                raise RuntimeError(f"{status}: {reply}")
            with self.lock:
                self.accepted[reply["job"]["id"]] = body["key"]
            time.sleep(self.arguments.pause_s)

    def run(self, token, name, chance):
        """A runner; with a chance it dies while it has a job."""
        client = Client(self.server.port, token)
        dice = random.Random(name)
        while not self.done.is_set():
            take = {"runner": name, "device": "cpu", "version": "scripted", "wait_s": 1}
            status, lease = client.ask_until_answered("POST", "/api/runner/take", take)
            if status != 200:
                continue
            path = f"/api/runner/jobs/{lease['job']['id']}"
            progress = {"lease": lease["lease"], "event": {"event": "progress", "stage": "speed"}}
            client.ask_until_answered("POST", path + "/progress", progress)
            if dice.random() < chance and not self.over.is_set():
                self.count("runner_kills")
                client.close()
                continue
            with self.lock:
                number = next(self.numbers)
            end = {"lease": lease["lease"], "verdict": verdict_on(lease, number)}
            status, reply = client.ask_until_answered("POST", path + "/end", end)
            if status != 200 or not reply["counted"]:
                self.count("not_counted")

    def keep_worker(self, name):
        """A real runner, killed and started again."""
        command = [self.arguments.program, "worker", "--device", "cpu", "--name", name]
        command += ["--server", f"http://127.0.0.1:{self.server.port}"]
        command += ["--token-file", str(self.server.folder / "runner-token")]
        dice = random.Random(name)
        with open(self.server.folder.parent / f"{name}.log", "ab") as log:
            while not self.done.is_set():
                worker = subprocess.Popen(command, stdout=log, stderr=log)
                if not self.over.wait(dice.uniform(0.5, self.arguments.worker_lives_s)):
                    worker.kill()
                    worker.wait()
                    self.count("worker_kills")
                    continue
                self.done.wait()
                worker.send_signal(signal.SIGINT)
                worker.wait(timeout=60)

    def kills(self):
        return sum(self.counts[f"{each}_kills"] for each in ("server", "worker", "runner"))

    def kill_servers(self):
        while self.kills() < self.arguments.kills:
            time.sleep(self.random.uniform(0.05, self.arguments.lives_s))
            self.server.kill()
            self.count("server_kills")
            self.server.start()
        self.over.set()

    def wait_for_all(self, token):
        """Leases of runners that died end after a minute; the last jobs may have several."""
        client = Client(self.server.port, token)
        until = time.monotonic() + self.arguments.wait_s
        while time.monotonic() < until:
            _, reply = client.ask_until_answered("GET", "/api/machine")
            if reply["queue"]["queued"] + reply["queue"]["running"] == 0:
                break
            time.sleep(1)
        self.done.set()


def faults_of(folder, accepted):
    """One line for each accepted job that is not as it should be."""
    database = sqlite3.connect(f"file:{folder}/serve.sqlite?mode=ro", uri=True)
    archive = sqlite3.connect(f"file:{folder}/archive.sqlite?mode=ro", uri=True)
    rows = database.execute("SELECT id, state, verdict, client_key FROM jobs")
    jobs = {row[0]: row[1:] for row in rows}
    ends = dict(
        database.execute(
            "SELECT job, count(*) FROM events"
            " WHERE json_extract(body, '$.event') = 'ended' GROUP BY job"
        )
    )
    verdicts = dict(
        archive.execute("SELECT id, count(*) FROM records WHERE kind = 'verdict' GROUP BY id")
    )
    faults = []
    for job, key in accepted.items():
        if job not in jobs or jobs[job][2] != key:
            faults.append(f"job {job}: it was accepted, and is lost")
            continue
        state, verdict, _ = jobs[job]
        if state not in ("done", "failed"):
            faults.append(f"job {job}: it is {state}")
        if ends.get(job, 0) != 1:
            faults.append(f"job {job}: it ended {ends.get(job, 0)} times")
        if state == "done" and verdicts.get(verdict, 0) != 1:
            times = verdicts.get(verdict, 0)
            faults.append(f"job {job}: its verdict is in the archive {times} times")
    known = {verdict for _, verdict, _ in jobs.values()}
    faults += [f"verdict {each}: no job has it" for each in verdicts if each not in known]
    if len(set(accepted.values())) != len(accepted):
        faults.append("a key has two jobs")
    states = {}
    for state, _, _ in jobs.values():
        states[state] = states.get(state, 0) + 1
    by_workers = database.execute(
        "SELECT count(*) FROM jobs JOIN runners ON runners.id = runner"
        " WHERE state = 'done' AND runners.name LIKE 'worker-%'"
    ).fetchone()[0]
    return faults, states, by_workers


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/release/assay")
    parser.add_argument("--kills", type=int, default=50, help="of the server and of runners")
    parser.add_argument("--submitters", type=int, default=4)
    parser.add_argument("--runners", type=int, default=4)
    parser.add_argument("--workers", type=int, default=0, help="real runners")
    parser.add_argument("--worker-lives-s", type=float, default=12, help="longest life of one")
    parser.add_argument("--lives-s", type=float, default=0.6, help="longest life of a server")
    parser.add_argument("--pause-s", type=float, default=0.05, help="between jobs of a submitter")
    parser.add_argument("--runner-chance", type=float, default=0.05, help="of a death, a job")
    parser.add_argument("--wait-s", type=float, default=300, help="for the last jobs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", help="file to add the result to")
    arguments = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place) / "hall"
        server = Server(arguments.program, folder, ["--quota", "1000000", "--queued", "1000000"])
        server.start()
        mentor = Client(server.port, server.token("mentor-token"))
        campaign = Campaign(server, arguments)
        runner_token = server.token("runner-token")
        threads = []
        for i in range(arguments.submitters):
            _, made = mentor.ask("POST", "/api/accounts", {"name": f"student {i}"})
            threads.append(threading.Thread(target=campaign.submit, args=(made["token"], f"s{i}")))
        for i in range(arguments.runners):
            threads.append(
                threading.Thread(
                    target=campaign.run, args=(runner_token, f"r{i}", arguments.runner_chance)
                )
            )
        for i in range(arguments.workers):
            threads.append(threading.Thread(target=campaign.keep_worker, args=(f"worker-{i}",)))
        for thread in threads:
            thread.daemon = True
            thread.start()
        campaign.kill_servers()
        campaign.wait_for_all(server.token("mentor-token"))
        for thread in threads:
            thread.join(timeout=60)
        server.end()
        faults, states, by_workers = faults_of(folder, campaign.accepted)
    result = {
        **campaign.counts,
        "accepted": len(campaign.accepted),
        "states": states,
        "ended_by_workers": by_workers,
        "faults": len(faults),
        "seconds": round(time.monotonic() - began, 1),
        "seed": arguments.seed,
    }
    print(json.dumps(result))
    for fault in faults[:20]:
        print(fault)
    if arguments.out:
        append(pathlib.Path(arguments.out), result)
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
