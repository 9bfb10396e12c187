"""The rates of the queue and the archive in PostgreSQL, and whether they lose anything.

    python3 bench/queue_load.py --out ROWS.jsonl [--case rate] [--kills 1000]
    python3 bench/queue_load.py --out ROWS.jsonl --folder FOLDER --case fill [--works 1000000]
    python3 bench/queue_load.py --out ROWS.jsonl --folder FOLDER --case million

Starts a PostgreSQL server of its own, whose commits wait for the disk. Cases: `rate`: 200 scripted
workers that judge for 0.35 s on average, and 16 that judge in no time; `idle`: 200 that judge for a
second; `append`: verdicts, one a transaction and in batches; `kills`. `fill` queues --works works
and adds as many that have ended, which takes minutes; `million` is the second of `rate` in an empty
database, in one with another run of ten works, and in the filled one, twice. The server of a
--folder stays in it. Appends a row a case.
"""
import argparse
import contextlib
import datetime
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests" / "e2e"))
import postgres_server  # noqa: E402

BENCH = ROOT / "build" / "release" / "bench"
ENDED_AT_ONCE = 100_000
FEW = 10
# Works that have ended: as a queue that has judged them would leave them.
ENDED = """
INSERT INTO assay.runs(owner, name, is_open) VALUES('owner', 'history', false)
  ON CONFLICT DO NOTHING;
INSERT INTO assay.works(run, key, batch, device, priority, request)
  SELECT r.id, 'old ' || i, 'problem', 'cpu', 0, left(repeat(md5(i::text), 100), 3000)
  FROM assay.runs r, generate_series({first}, {first} + {count} - 1) i WHERE r.name = 'history';
INSERT INTO assay.ends(work, run, sequence, state, attempts, worker, role, node, model, verdict,
    error)
  SELECT w.id, w.run, nextval('assay.end_sequence'), 'judged', 1, 'worker', 'owner', 'node',
         'model', left(repeat(md5(w.key), 80), 2500), ''
  FROM generate_series({first}, {first} + {count} - 1) i
    JOIN assay.runs r ON r.name = 'history'
    JOIN assay.works w ON w.run = r.id AND w.key = 'old ' || i;
UPDATE assay.runs SET added = added + {count}, judged = judged + {count} WHERE name = 'history';
"""


def run(words):
    ran = subprocess.run(list(map(str, words)), stdout=subprocess.PIPE, text=True, check=False)
    if ran.returncode not in (0, 1) or not ran.stdout.strip():
        raise SystemExit(f"{words[0]} ended with {ran.returncode}")
    return json.loads(ran.stdout)


def rate(url, name, workers, judge_ms, seconds):
    return run([BENCH / "queue_load", url, "rate", name, workers, judge_ms, seconds])


def rates(server, arguments):
    url = server.database("rates")
    yield rate(url, "paced", 200, 350, arguments.seconds)
    yield rate(url, "eager", 16, 0, arguments.seconds)


def idle(server, arguments):
    yield rate(server.database("idle"), "second", 200, 1000, arguments.seconds)


def fill(server, arguments):
    url = server.database("million")
    yield run([BENCH / "queue_load", url, "fill", "queued", arguments.works])
    for first in range(0, arguments.works, ENDED_AT_ONCE):
        count = min(ENDED_AT_ONCE, arguments.works - first)
        server.sql(ENDED.format(first=first, count=count), "million")
    server.sql("VACUUM ANALYZE", "million")
    server.sql("CHECKPOINT", "million")


def million(server, arguments):
    for turn in range(2):
        number = server.sql("SELECT count(*) FROM pg_database")
        name = f"turn {turn} of {number}"
        url = server.database(f"empty_{number}")
        for few in (0, FEW):
            if few > 0:
                run([BENCH / "queue_load", url, "fill", "queued", few])
            row = rate(url, f"{name} {few}", 16, 0, arguments.seconds)
            server.sql(f"SELECT assay.queue_cancel('{name} {few}')", f"empty_{number}")
            yield {**row, "works_queued_besides": few, "works_ended_besides": 0}
        ended = server.sql("SELECT sum(judged) FROM assay.runs", "million")
        waiting = server.sql("SELECT count(*) FROM assay.waiting", "million")
        size = server.sql("SELECT pg_database_size('million')")
        row = rate(server.url("million"), name, 16, 0, arguments.seconds)
        server.sql(f"SELECT assay.queue_cancel('{name}')", "million")
        row |= {"works_queued_besides": int(waiting), "works_ended_besides": int(ended)}
        yield {**row, "database_bytes": int(size)}


def kills(server, arguments):
    url = server.database("kills")
    yield run([BENCH / "queue_kills", url, 8, arguments.kills, arguments.seed])


def appends(server, arguments):
    url = server.database("appends")
    for records, batch in ((1000, 1), (5000, 16), (20000, 1000)):
        yield run([BENCH / "queue_load", url, "append", records, batch])


CASES = {"rate": rates, "idle": idle, "append": appends, "kills": kills}
DEFAULT = tuple(CASES)
CASES |= {"fill": fill, "million": million}  # with a --folder


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", required=True)
    parser.add_argument("--case", choices=CASES, action="append")
    parser.add_argument("--works", type=int, default=1_000_000)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", help="keeps the server; default: one that is removed")
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = arguments.folder
        if folder is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp"))
        pathlib.Path(folder).chmod(0o755)
        (pathlib.Path(folder) / "server").mkdir(exist_ok=True)
        server = postgres_server.Server(pathlib.Path(folder) / "server", durable=True)
        stack.callback(server.stop)
        for case in arguments.case or DEFAULT:
            for row in CASES[case](server, arguments):
                row["time"] = datetime.datetime.now(datetime.timezone.utc).isoformat()
                print(json.dumps(row), flush=True)
                with open(arguments.out, "a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
