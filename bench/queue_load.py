"""The rates of the queue and the archive in PostgreSQL, and whether they lose anything.

    python3 bench/queue_load.py --out ROWS.jsonl [--case rate] [--works 1000000] [--kills 1000]

Starts a PostgreSQL server of its own, whose commits wait for the disk. Cases: `rate`: 200 scripted
workers that judge for 0.35 s on average, then 16 that judge in no time; `append`: verdicts, one a
transaction and in batches; `million`: the second of `rate` with no other works, then with as many
works queued and ended as --works says; `kills`. Appends a row a case.
"""
import argparse
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
# A run whose works have ended: as a queue that has judged them would leave them.
ENDED = """
INSERT INTO assay.runs(owner, name, added, judged, is_open)
  VALUES('owner', 'history', {works}, {works}, false);
INSERT INTO assay.works(run, key, batch, device, priority, request)
  SELECT r.id, 'old ' || i, 'problem', 'cpu', 0, left(repeat(md5(i::text), 100), 3000)
  FROM assay.runs r, generate_series(1, {works}) i WHERE r.name = 'history';
INSERT INTO assay.ends(work, run, sequence, state, attempts, worker, role, node, model, verdict,
    error)
  SELECT w.id, w.run, nextval('assay.end_sequence'), 'judged', 1, 'worker', 'owner', 'node',
         'model', left(repeat(md5(w.key), 80), 2500), ''
  FROM assay.works w JOIN assay.runs r ON r.id = w.run AND r.name = 'history';
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


def million(server, arguments):
    url = server.database("million")
    yield {**rate(url, "before", 16, 0, arguments.seconds), "works_besides": 0}
    yield run([BENCH / "queue_load", url, "fill", "queued", arguments.works])
    server.sql(ENDED.format(works=arguments.works), "million")
    server.sql("VACUUM ANALYZE", "million")
    size = server.sql("SELECT pg_database_size('million')", "million")
    row = rate(url, "after", 16, 0, arguments.seconds)
    yield {**row, "works_besides": 2 * arguments.works, "database_bytes": int(size)}


def kills(server, arguments):
    url = server.database("kills")
    yield run([BENCH / "queue_kills", url, 8, arguments.kills, arguments.seed])


def appends(server, arguments):
    url = server.database("appends")
    for records, batch in ((1000, 1), (5000, 16), (20000, 1000)):
        yield run([BENCH / "queue_load", url, "append", records, batch])


CASES = {"rate": rates, "append": appends, "million": million, "kills": kills}


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
    parser.add_argument("--folder", default="/var/tmp")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        pathlib.Path(folder).chmod(0o755)
        with postgres_server.server(pathlib.Path(folder) / "server", durable=True) as server:
            for case in arguments.case or CASES:
                for row in CASES[case](server, arguments):
                    row["time"] = datetime.datetime.now(datetime.timezone.utc).isoformat()
                    print(json.dumps(row), flush=True)
                    with open(arguments.out, "a", encoding="utf-8") as file:
                        file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
