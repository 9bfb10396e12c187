"""How long a run over Slurm takes to its first verdict, on nodes of this machine.

    python3 bench/slurm_start.py --out ROWS.jsonl [--times 3] [--candidates 12]

Starts a Slurm cluster of three nodes (tests/slurm/start; needs root) and a PostgreSQL server, then
judges new runs of small candidates for correctness, with the queue in a folder and in the database
in turn. Appends a row a run; seconds count from the call of `assay run`.
"""
import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests" / "e2e"))
import postgres_server  # noqa: E402

ASSAY = ROOT / "build" / "release" / "assay"
NODES = 3
PROBLEM = """import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
def get_inputs():
    return [torch.randn(4, 64)]
def get_init_inputs():
    return []
"""
CANDIDATE = """import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.clamp(x, min=0)  # {}
"""


def candidates(folder, count):
    """A new run folder beside a new folder of problems."""
    problems = folder / "KernelBench" / "level1"
    problems.mkdir(parents=True)
    (problems / "19_ReLU.py").write_text(PROBLEM)
    run = folder / "run"
    run.mkdir()
    for sample in range(count):
        path = run / f"level_1_problem_19_sample_{sample}_kernel.py"
        path.write_text(CANDIDATE.format(sample))
    return run


def judged(folder, count, queue, environment):
    """A row: seconds to the first pilot's word, to the first verdict, and to the end."""
    run = candidates(folder, count)
    words = [ASSAY, "run", run, "--problems", folder / "KernelBench", "--correctness-only"]
    words += ["--threads", "1", "--slurm", "--nodes", NODES, "--queue", queue, "--no-save"]
    began = time.monotonic()
    with open(folder / "stderr", "w", encoding="utf-8") as errors:
        process = subprocess.Popen(
            list(map(str, words)), stdout=subprocess.PIPE, stderr=errors, env=environment, text=True
        )
        at = {}
        rows = run / "verdicts.jsonl"
        logs = run / "logs"
        while process.poll() is None:
            if "pilot_s" not in at and any(log.stat().st_size for log in logs.glob("*.log")):
                at["pilot_s"] = time.monotonic() - began
            if "first_verdict_s" not in at and rows.exists() and rows.stat().st_size:
                at["first_verdict_s"] = time.monotonic() - began
            time.sleep(0.02)
    if process.returncode != 0:
        raise SystemExit((folder / "stderr").read_text())
    at["end_s"] = time.monotonic() - began
    return {key: round(seconds, 2) for key, seconds in at.items()}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", required=True)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--candidates", type=int, default=12)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, postgres_server.temporary() as server:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        cluster = folder / "slurm"
        environment = dict(os.environ, SLURM_CONF=str(cluster / "slurm.conf"))
        subprocess.run([ROOT / "tests/slurm/start", cluster, str(NODES)], check=True)
        try:
            for turn in range(arguments.times):
                for kind in ("folder", "database"):
                    of = folder / f"{kind}-{turn}"
                    queue = of / "queue" if kind == "folder" else server.database(f"turn_{turn}")
                    row = {"what": "slurm start", "nodes": NODES, "queue": kind}
                    row["candidates"] = arguments.candidates
                    row |= judged(of, arguments.candidates, queue, environment)
                    row["time"] = datetime.datetime.now(datetime.timezone.utc).isoformat()
                    print(json.dumps(row), flush=True)
                    with open(arguments.out, "a", encoding="utf-8") as file:
                        file.write(json.dumps(row) + "\n")
        finally:
            subprocess.run([ROOT / "tests/slurm/stop", cluster], check=False)


if __name__ == "__main__":
    main()
