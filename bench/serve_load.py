"""The load of a class on `assay serve`: pages, event streams, and thirty students at once.

A server's folder is filled with the board's projection of 60,000 verdicts of 500 players (the
archive itself stays empty: pages of the board read the projection alone). Then, at one time:

- 300 clients read the events of jobs that nobody ends,
- requests come at a steady rate, each at its own time whether or not those before it were answered:
  the board at several p, one problem's board, the board as JSON, the problems, one problem, jobs,
- 30 students submit at one moment,
- a runner ends two jobs a second with a verdict, so that pages change.

A row has the times of replies [ms] from the moment when a request was due, so that waiting counts.
Before the load each page is asked for by itself, first after the server's start and then again.
With --browser (npm ci in tests/browser) a browser opens the board 7 times, each time afresh:

    bench/serve_load.py --program build/release/assay --browser --out load.jsonl
"""

import argparse
import asyncio
import gzip
import json
import pathlib
import random
import sqlite3
import subprocess
import tempfile
import threading
import time

from rows import append
from serve_client import PROBLEM, Client, Server, verdict_on

PROBLEMS = ["softmax", "gelu", "layernorm", "matmul", "reduce", "transpose", "rmsnorm", "conv2d"]
TARGETS = [
    "/",
    "/?p=1.5",
    "/?p=2&by=human",
    "/?problem=softmax",
    "/api/board?p=1",
    "/problems",
    "/problems/softmax",
    "/jobs",
]
COLUMNS = 25
ALONE = 21  # times that a page is asked for by itself
FIRST_PAINT = pathlib.Path(__file__).resolve().parents[1] / "tests" / "browser" / "first_paint.mjs"


def fill(folder, verdicts, players, seed):
    """Rows of the board's projection, as serve/board.cc keeps them.

    Their numbers end at 0, below those of the archive, in which the load adds verdicts."""
    dice = random.Random(seed)
    database = sqlite3.connect(folder / "serve.sqlite")
    rows = []
    for number in range(1, verdicts + 1):
        player = dice.randrange(players)
        ratio = dice.lognormvariate(0.2, 0.5)
        is_right = dice.random() < 0.7
        wins = is_right and ratio > 1.02
        speeds = (ratio, ratio * 0.98, ratio * 1.02) if is_right else (0.0, 0.0, 0.0)
        rows.append(
            (
                number - verdicts, 0, f"{number:012x}", dice.choice(PROBLEMS),
                dice.choice(["small", "large"]), "Example CPU", "float32", "native",
                f"player {player}", "machine" if player % 10 == 0 else "student",
                "faster" if wins else "tie" if is_right else "wrong",
                5 if wins else 4 if is_right else 3, 0, *speeds, speeds[1] if wins else 0.0,
                1e6 / ratio if is_right else 0.0, 40.0, "2026-11-27T00:00:00Z", f"{number:064x}",
                "local cpu", 0, "", 0,
            )
        )  # fmt: skip
    marks = ", ".join("?" * COLUMNS)
    with database:
        database.executemany(f"INSERT INTO board VALUES({marks})", rows)
    database.close()


def head(method, path, port, token, more=""):
    return (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Length: 0\r\n{more}\r\n"
    ).encode()


async def read_reply(reader):
    header = await reader.readuntil(b"\r\n\r\n")
    status = int(header.split(None, 2)[1])
    length = 0
    for line in header.split(b"\r\n"):
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    return status, await reader.readexactly(length)


async def stream(port, token, job, heard, over):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    path = f"/api/jobs/{job}/events"
    writer.write(head("GET", path, port, token, "Accept: text/event-stream\r\n"))
    await writer.drain()
    await reader.readuntil(b"data: ")
    heard.append(time.monotonic())
    await over.wait()
    writer.close()


class Pool:
    """Connections that wait for their next request."""

    def __init__(self, port):
        self.port, self.free = port, []

    async def ask(self, path, token):
        if not self.free:
            self.free.append(await asyncio.open_connection("127.0.0.1", self.port))
        reader, writer = self.free.pop()
        writer.write(head("GET", path, self.port, token, "Accept-Encoding: gzip\r\n"))
        await writer.drain()
        status, body = await read_reply(reader)
        self.free.append((reader, writer))
        return status, len(body)


def pages_alone(client):
    """Each page by itself: the first time, the median of later ones [ms], and its bytes."""
    pages = {}
    for target in TARGETS:
        times = []
        for _ in range(ALONE):
            begun = time.monotonic()
            status, body = client.ask_bytes("GET", target, more="Accept-Encoding: gzip\r\n")
            times.append((time.monotonic() - begun) * 1e3)
            if status != 200:
                raise RuntimeError(f"{target}: {status}")
        pages[target] = {
            "first_ms": round(times[0], 2),
            "median_ms": round(sorted(times[1:])[(ALONE - 1) // 2], 2),
            "bytes": len(gzip.decompress(body)),
            "gzip_bytes": len(body),
        }
    return pages


def first_paints(server, times=7):
    """The board in a browser: the median of first paints, and what was sent."""
    url = f"http://127.0.0.1:{server.port}/"
    command = ["node", str(FIRST_PAINT), str(times), url, server.token("mentor-token")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    seen = json.loads(run.stdout)["seen"]
    paints = sorted(each["first_paint_ms"] for each in seen)
    return {"first_paint_ms": paints[len(paints) // 2], "seen": seen}


async def request_at(pool, due, path, token, rows):
    await asyncio.sleep(max(0, due - time.monotonic()))
    try:
        status, size = await pool.ask(path, token)
    except (OSError, asyncio.IncompleteReadError):
        status, size = 0, 0
    rows.append((path, (time.monotonic() - due) * 1e3, status, size))


def submit(port, token, name):
    client = Client(port, token)
    body = {"problem": "softmax", "size": "tiny", "name": "mine.cpp", "source": f"// {name}\n"}
    begun = time.monotonic()
    status, reply = client.ask("POST", "/api/jobs", body)
    return (time.monotonic() - begun) * 1e3, status, reply["job"]["id"], reply["job"]["place"]


def judge_queue(queued, students):
    """Nobody is lost, places count up, and students stand in the order in which they came."""
    accepted = sorted(job for _, status, job, _ in students if status == 202)
    order = [job["id"] for job in queued if job["author"] != "mentor"]
    return {
        "submit_ms": quantiles([ms for ms, _, _, _ in students]),
        "submitted": len(accepted),
        "lost": len(set(accepted) - set(order)),
        "order_kept": order == accepted,
        "places_shown": all(place >= 1 for _, _, _, place in students)
        and [job["place"] for job in queued] == list(range(1, len(queued) + 1)),
    }


def judge_jobs(port, token, rate, over):
    """A player with a runner of its own: jobs that end with a verdict. Returns how many did."""
    client, ended = Client(port, token), 0
    while not over.wait(1 / rate):
        body = {"problem": PROBLEM, "size": "tiny", "name": "mine.cpp", "source": f"// {ended}\n"}
        client.ask("POST", "/api/jobs", body)
        take = {"runner": "own", "device": "cpu", "version": "scripted", "wait_s": 5}
        status, lease = client.ask("POST", "/api/runner/take", take)
        if status == 200:
            end = {"lease": lease["lease"], "verdict": verdict_on(lease, (1 << 44) + ended)}
            path = f"/api/runner/jobs/{lease['job']['id']}/end"
            status, reply = client.ask("POST", path, end)
            ended += status == 200 and reply["counted"]
    return ended


def quantiles(times):
    ordered = sorted(times)
    at = lambda share: round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 2)
    return {"count": len(ordered), "p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "max": at(1)}


async def load(server, tokens, jobs, player, arguments):
    heard, rows, over = [], [], asyncio.Event()
    judged_enough = threading.Event()
    judged = asyncio.create_task(
        asyncio.to_thread(judge_jobs, server.port, player, arguments.verdict_rate, judged_enough)
    )
    streams = [
        asyncio.create_task(
            stream(server.port, tokens[i % len(tokens)], jobs[i % len(jobs)], heard, over)
        )
        for i in range(arguments.streams)
    ]
    while len(heard) < arguments.streams:
        await asyncio.sleep(0.05)
    pool = Pool(server.port)
    begun = time.monotonic() + 0.2
    count = int(arguments.rate * arguments.seconds)
    requests = [
        asyncio.create_task(
            request_at(pool, begun + i / arguments.rate, TARGETS[i % len(TARGETS)],
                       tokens[i % len(tokens)], rows)
        )
        for i in range(count)
    ]  # fmt: skip
    await asyncio.sleep(arguments.seconds / 2)
    students = await asyncio.gather(
        *(
            asyncio.to_thread(submit, server.port, token, f"student {i}")
            for i, token in enumerate(tokens[: arguments.students])
        )
    )
    await asyncio.gather(*requests)
    wall = time.monotonic() - begun
    judged_enough.set()
    ended = await judged
    alive = sum(not each.done() for each in streams)
    over.set()
    await asyncio.gather(*streams, return_exceptions=True)
    return rows, students, wall, alive, ended


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/release/assay")
    parser.add_argument("--verdicts", type=int, default=60_000)
    parser.add_argument("--players", type=int, default=500)
    parser.add_argument("--rate", type=float, default=200, help="requests a second")
    parser.add_argument("--verdict-rate", type=float, default=2, help="jobs that end, a second")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--streams", type=int, default=300)
    parser.add_argument("--students", type=int, default=30)
    parser.add_argument("--browser", action="store_true", help="measure first paints, too")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", help="file to add the rows to")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place) / "hall"
        server = Server(arguments.program, folder)
        server.start()
        server.end()
        fill(folder, arguments.verdicts, arguments.players, arguments.seed)
        begun = time.monotonic()
        server.start()
        starts_s = time.monotonic() - begun
        mentor = Client(server.port, server.token("mentor-token"))
        tokens = [
            mentor.ask("POST", "/api/accounts", {"name": f"student {i}"})[1]["token"]
            for i in range(max(arguments.students, 30))
        ]
        alone = pages_alone(mentor)
        browser = first_paints(server) if arguments.browser else None
        jobs = [submit(server.port, mentor.token, f"mentor {i}")[2] for i in range(10)]
        _, player = mentor.ask("POST", "/api/accounts", {"name": "player 0"})
        rows, students, wall, alive, ended = asyncio.run(
            load(server, tokens, jobs, player["token"], arguments)
        )
        mentor.close()  # the server ends a connection that was silent for so long
        _, places = mentor.ask("GET", "/api/jobs?all=1&state=queued")
        memory_kib = next(
            int(line.split()[1])
            for line in open(f"/proc/{server.process.pid}/status", encoding="utf-8")
            if line.startswith("VmRSS")
        )
        server.end()
    result = {
        "verdicts": arguments.verdicts,
        "players": arguments.players,
        "starts_s": round(starts_s, 2),
        "alone": alone,
        "browser": browser,
        "rate": arguments.rate,
        "reached_rate": round(len(rows) / wall, 1),
        "failed": sum(status != 200 for _, _, status, _ in rows),
        "verdict_rate": arguments.verdict_rate,
        "ended_with_verdict": ended,
        "streams": arguments.streams,
        "streams_alive": alive,
        "resident_mib": round(memory_kib / 1024, 1),
        "pages_ms": {
            target: quantiles([ms for path, ms, _, _ in rows if path == target])
            for target in TARGETS
        },
        "bytes": {
            target: max(size for path, _, _, size in rows if path == target) for target in TARGETS
        },
        "all_ms": quantiles([ms for _, ms, _, _ in rows]),
        **judge_queue(places["jobs"], students),
        "seed": arguments.seed,
    }
    print(json.dumps(result))
    if arguments.out:
        append(pathlib.Path(arguments.out), result)


if __name__ == "__main__":
    main()
