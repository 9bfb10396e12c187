"""Kills a server and its runners under load: no accepted job may be lost, or end twice.

Submitters send jobs with a key of their own until the server has answered. Scripted runners take
jobs over the same routes as `assay worker --server`, and end them with a verdict that was measured
earlier, on the job's source. They are killed in the midst of it: they forget what they had. The
server is killed by SIGKILL at random moments and started again. At the end all jobs are waited for,
and the database and the archive are read:

    bench/serve_kills.py --program build/release/assay --kills 1000 --out kills.jsonl

Exit code 1: a job was lost, ended twice or not at all, or its verdict is not in the archive once.
"""

import argparse
import hashlib
import json
import pathlib
import random
import sqlite3
import tempfile
import threading
import time

from serve_client import Client, Server

HERE = pathlib.Path(__file__).resolve().parent
VERDICTS = HERE / "results" / "cpu-2core" / "kernel_verdicts.jsonl"
PROBLEM = "softmax"


def verdict_on(lease, number):
    """A measured verdict, as if it were on this job's source."""
    job = lease["job"]
    for line in VERDICTS.open(encoding="utf-8"):
        verdict = json.loads(line)
        if verdict["problem"]["name"] == PROBLEM and verdict["outcome"] == "faster":
            break
    source = job["candidate"]["source"].encode()
    verdict["candidate"]["hash"] = hashlib.sha256(source).hexdigest()
    verdict["problem"]["hash"] = job["problem"]["hash"]
    verdict["id"] = f"{number:012x}"
    verdict["samples"] = []
    return verdict


class Campaign:
    def __init__(self, server, arguments):
        self.server, self.arguments = server, arguments
        self.random = random.Random(arguments.seed)
        self.over = threading.Event()  # no further submissions or kills
        self.done = threading.Event()
        self.lock = threading.Lock()
        self.accepted = {}  # job -> key
        self.counts = {"server_kills": 0, "runner_kills": 0, "repeated": 0, "not_counted": 0}
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

    def kill_servers(self):
        while self.counts["server_kills"] + self.counts["runner_kills"] < self.arguments.kills:
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
            if reply["queue"] == {"queued": 0, "running": 0}:
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
    return faults, states


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/release/assay")
    parser.add_argument("--kills", type=int, default=50, help="of the server and of runners")
    parser.add_argument("--submitters", type=int, default=4)
    parser.add_argument("--runners", type=int, default=4)
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
        for thread in threads:
            thread.daemon = True
            thread.start()
        campaign.kill_servers()
        campaign.wait_for_all(server.token("mentor-token"))
        for thread in threads:
            thread.join(timeout=60)
        server.end()
        faults, states = faults_of(folder, campaign.accepted)
    result = {
        **campaign.counts,
        "accepted": len(campaign.accepted),
        "states": states,
        "faults": len(faults),
        "seconds": round(time.monotonic() - began, 1),
        "seed": arguments.seed,
    }
    print(json.dumps(result))
    for fault in faults[:20]:
        print(fault)
    if arguments.out:
        with open(arguments.out, "a", encoding="utf-8") as out:
            out.write(json.dumps(result) + "\n")
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
