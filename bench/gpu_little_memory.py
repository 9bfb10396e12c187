"""What the judge does with a GPU of which another program holds all but a few GiB, as on a small
card: PyTorch beside itself and a kernel in the device form, at two sizes of softmax. Appends one
JSON object a call to RESULTS:

    python3 bench/gpu_little_memory.py RESULTS.jsonl [--left 6 8 12 16 24] [--seconds S]

`found_gib`: what a candidate in Python finds free in its first call [GiB], beside the judge's
waiting hosts; `found_alone_gib`: the same once they have ended, as whoever gives nothing for want
of memory is judged again. `verdicts`, or the `error` that the call ended with; `took_s`. Begins
nothing after S seconds. $ASSAY_BINARY names the program.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests" / "gpu"))

import rows
from other_program import all_but

ASSAY = os.environ.get("ASSAY_BINARY", str(ROOT / "build" / "release" / "assay"))
SIZES = ((1024, 2048), (8192, 8192))
CANDIDATES = (ROOT / "tests/gpu/same.py", ROOT / "kernels/softmax/one_read.cu")
# Says what it finds, as a failure: by its words one of memory, which is judged again, or not.
FINDS = """import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        raise RuntimeError(f"{words}: found {{torch.cuda.mem_get_info()[0]}} bytes")
"""


def judge(size, *candidates):
    command = [ASSAY, "judge", "softmax", *map(str, candidates)]
    command += ["--set", f"ROWS={size[0]}", "--set", f"COLUMNS={size[1]}"]
    command += ["--device", "cuda", "--budget", "10", "--json", "-q", "--no-save"]
    begin = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    row = {"took_s": round(time.perf_counter() - begin, 2), "exit_code": done.returncode}
    if done.stderr:
        row["error"] = done.stderr.strip()
    verdicts = json.loads(done.stdout or "[]")
    return row | {"verdicts": verdicts if isinstance(verdicts, list) else [verdicts]}


def in_brief(verdict):
    speed = verdict["speed"]
    return {
        "candidate": pathlib.Path(verdict["candidate"]["path"]).name,
        "outcome": verdict["outcome"],
        "message": verdict["message"],
        "note": verdict["correctness"]["note"] if verdict["correctness"] else None,
        "baseline": speed["baselines"][speed["headline"]] if speed else None,
        "cost": verdict["cost"],
    }


def found_gib(size, words, folder):
    path = folder / "finds.py"
    path.write_text(FINDS.format(words=words), encoding="utf-8")
    said = json.dumps(judge(size, path))
    found = re.search(r"found (\d+) bytes", said)
    return round(int(found[1]) / 2**30, 2) if found else said[:2000]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("--left", type=int, nargs="+", default=[6, 8, 12, 16, 24])
    parser.add_argument("--seconds", type=float, default=600)
    arguments = parser.parse_args()
    end = time.monotonic() + arguments.seconds
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for left in arguments.left:
            for size in SIZES:
                if time.monotonic() > end:
                    sys.exit(f"no time is left for {left} GiB, {size}")
                with all_but(left):
                    row = judge(size, *CANDIDATES)
                    row["found_gib"] = found_gib(size, "stops", folder)
                    row["found_alone_gib"] = found_gib(size, "out of memory", folder)
                row["verdicts"] = [in_brief(verdict) for verdict in row["verdicts"]]
                row = {"left_gib": left, "size": size, **row}
                rows.append(arguments.results, row)
                print(json.dumps({k: v for k, v in row.items() if k != "verdicts"}), flush=True)
                for verdict in row["verdicts"]:
                    print(f"  {verdict['candidate']}: {verdict['message']}", flush=True)


if __name__ == "__main__":
    main()
