#!/usr/bin/env python3
"""Has a runner judge shipped kernels for a server, both on this machine.

`assay serve` gets a fresh folder and no device of its own. `assay worker --server` asks it for
work with a token, as a GPU machine does. All kernels of the problems are submitted at once; one
verdict is then judged again by `assay rejudge`, as anyone may do who doubts a rank:

    bench/serve_runner.py --program build/release/assay --device cuda --out runner.jsonl

A row a job: its place when it was accepted, its outcome, the speedup and its interval, and the
seconds until it ended. A row for the whole follows. Exit code 1: a job did not end with a verdict,
or the two judgements differ.
"""
import argparse
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from rows import ROOT, append
from serve_client import Client, Server

PROBLEMS = "softmax,layer_norm,gelu,matmul,cross_entropy"
ENDED = ("done", "failed", "cancelled")


def kernels(problems, device):
    """(problem, path) of every shipped kernel that this device can judge."""
    for problem in problems:
        for path in sorted((ROOT / "kernels" / problem).iterdir()):
            is_triton = path.suffix == ".py" and "import triton" in path.read_text()
            for_gpu = path.suffix == ".cu" or is_triton
            if path.suffix == ".py" and not is_triton:
                yield problem, path
            elif path.suffix in (".cpp", ".cu", ".py") and for_gpu == device.startswith("cuda"):
                yield problem, path


def submit(client, problem, path, size):
    body = {
        "problem": problem,
        "size": size,
        "name": path.name,
        "source": path.read_text(),
        "key": f"{problem} {path.name}",
    }
    status, reply = client.ask("POST", "/api/jobs", body)
    if status != 202:
        raise RuntimeError(f"{path}: {status} {reply}")
    return reply["job"]


def ended(client, job, until):
    while time.monotonic() < until:
        status, reply = client.ask("GET", f"/api/jobs/{job['id']}")
        if status == 200 and reply["job"]["state"] in ENDED:
            return reply["job"]
        time.sleep(0.05)
    raise RuntimeError(f"job {job['id']} did not end")


def row(client, job, seconds):
    """What is kept of a job that has ended `seconds` after all were submitted."""
    kept = {key: job[key] for key in ("id", "problem", "size", "name", "state", "runner")}
    kept |= {"failure": job["failure"], "ended_s": round(seconds, 2)}
    if not job["verdict"]:
        return kept
    _, verdict = client.ask("GET", f"/api/verdicts/{job['verdict']}")
    verdict = verdict.get("verdict", verdict)
    eager = ((verdict["speed"] or {}).get("baselines") or {}).get("eager", {})
    device = verdict["machine"].get("gpu") or verdict["machine"]["cpu"]
    kept |= {"outcome": verdict["outcome"], "speedup": eager.get("speedup")}
    return kept | {"ci": eager.get("ci"), "device": device, "seed": verdict["seed"]}


def judge_all(arguments, server, token_file):
    """Submits all, and appends their rows. Returns them."""
    client = Client(server.port, token_file.read_text().strip())
    begin = time.monotonic()
    jobs = [
        submit(client, problem, path, arguments.size)
        for problem, path in kernels(arguments.problems.split(","), arguments.device)
    ]
    places = [job["place"] for job in jobs]
    rows = []
    for job, place in zip(jobs, places):
        job = ended(client, job, begin + arguments.seconds)
        rows.append({"place": place} | row(client, job, time.monotonic() - begin))
        append(arguments.out, rows[-1])
        print(json.dumps(rows[-1]), flush=True)
    return rows, client.ask("GET", f"/api/jobs/{jobs[0]['id']}")[1]["job"]["verdict"]


def rejudge(arguments, server, token_file, verdict):
    url = f"http://127.0.0.1:{server.port}/verdicts/{verdict}"
    command = [arguments.program, "rejudge", url, "--token-file", str(token_file), "--json"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=arguments.seconds)
    if not run.stdout:
        raise RuntimeError(f"assay rejudge: exit {run.returncode}: {run.stderr}")
    return json.loads(run.stdout)["agreement"]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--program", default="build/release/assay")
    parser.add_argument("--device", default="cpu", help="cpu, cuda or a GPU such as cuda:1")
    parser.add_argument("--problems", default=PROBLEMS)
    parser.add_argument("--size", default="small")
    parser.add_argument("--seconds", type=float, default=300, help="until all must have ended")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        hall = pathlib.Path(folder) / "hall"
        server = Server(arguments.program, hall, ["--verdict-seconds", "20"])
        server.start()
        token_file = server.folder / "mentor-token"
        command = [arguments.program, "worker", "--server", f"http://127.0.0.1:{server.port}"]
        command += ["--token-file", str(token_file), "--device", arguments.device]
        worker = subprocess.Popen(command)
        try:
            rows, first = judge_all(arguments, server, token_file)
            agreement = rejudge(arguments, server, token_file, first) if first else "no verdict"
        finally:
            worker.send_signal(signal.SIGINT)
            worker.wait(timeout=60)
            server.end()
    lost = [each for each in rows if each["state"] != "done"]
    whole = {"jobs": len(rows), "lost": len(lost), "rejudged": agreement}
    whole |= {"seconds": rows[-1]["ended_s"], "server": "same machine"}
    append(arguments.out, whole)
    print(json.dumps(whole))
    return 1 if lost or agreement not in ("agrees", "undecided") else 0


if __name__ == "__main__":
    sys.exit(main())
