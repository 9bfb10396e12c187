"""What a verdict on a GPU costs, with KernelBench's own way of evaluating the same kernel beside it
in the same run. Appends one JSON object a measurement to RESULTS:

    python3 bench/gpu_verdicts.py RESULTS.jsonl [--repeats 2] [--size small] [--form native]

"first": a fresh process and one candidate; "warm": several candidates in one call, which differ in
their block size (the first of them, for which the reference starts, is marked); "kernelbench": the
way of gpu_kernelbench_path.py. $ASSAY_BINARY names the program, $ASSAY_PYTHON the interpreter with
PyTorch.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import rows

ROOT = pathlib.Path(__file__).resolve().parents[1]
ASSAY = os.environ.get("ASSAY_BINARY", str(ROOT / "build" / "release" / "assay"))
PYTHON = os.environ.get("ASSAY_PYTHON", sys.executable)
KERNEL = ROOT / "kernels" / "softmax" / "one_read.cu"
# By form: a kernel, and where it says how many threads a block has.
FORMS = {
    "device": (KERNEL, "BLOCK = 256"),
    "native": (ROOT / "kernels" / "softmax" / "native.cu", "kThreads = 256"),
    "python": (ROOT / "kernels" / "softmax" / "triton_rows.py", "width // 512"),
}
BLOCKS = (256, 128, 512, 192, 320, 384, 448, 640)
SIZES = {"small": (1024, 2048), "large_rows": (8192, 8192)}


def variants(folder, count, form="device"):
    """The kernel with other block sizes, as files."""
    kernel, choice = FORMS[form]
    text = kernel.read_text(encoding="utf-8")
    for block in BLOCKS[:count]:
        path = pathlib.Path(folder) / f"block_{block}{kernel.suffix}"
        chosen = f"{choice.rpartition(' ')[0]} {block}"
        path.write_text(text.replace(choice, chosen), encoding="utf-8")
        yield str(path)


def judge(paths, row_count, columns):
    """Verdicts of one call, and how long it took [s]."""
    command = [ASSAY, "judge", "softmax", *paths, "--device", "cuda", "--json", "-q"]
    command += ["--set", f"ROWS={row_count}", "--set", f"COLUMNS={columns}"]
    with tempfile.TemporaryDirectory() as state:
        folders = ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME")
        environment = dict(os.environ, **dict.fromkeys(folders, state))
        begin = time.perf_counter()
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=300, env=environment, check=False
        )
        took_s = time.perf_counter() - begin
    try:
        verdicts = json.loads(done.stdout)
    except json.JSONDecodeError as error:
        raise SystemExit(f"no verdicts: {done.stderr[-2000:]}") from error
    verdicts = verdicts if isinstance(verdicts, list) else [verdicts]
    if len(verdicts) != len(paths):
        raise SystemExit(f"{len(verdicts)} verdicts of {len(paths)}: {done.stderr[-2000:]}")
    return verdicts, took_s


def summary(verdict):
    baseline = verdict["speed"]["baselines"]["eager"] if verdict["speed"] else {}
    return {
        "outcome": verdict["outcome"],
        "message": verdict["message"],
        "cost": verdict["cost"],
        "calls_checked": verdict["correctness"]["calls_checked"],
        "result": {
            key: baseline.get(key)
            for key in (
                "time_ns",
                "candidate_time_ns",
                "speedup",
                "ci",
                "pairs",
                "rounds",
                "calls_per_block",
                "disturbed_share",
                "launched",
            )
        },
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--form", choices=FORMS, default="device")
    parser.add_argument("--candidates", type=int, default=len(BLOCKS))
    parser.add_argument("--no-kernelbench", action="store_true")
    arguments = parser.parse_args()
    row_count, columns = SIZES[arguments.size]

    def keep(what, **values):
        common = {"what": what, "form": arguments.form, "size": [row_count, columns]}
        rows.append(arguments.results, common | values)
        shown = {key: values[key] for key in values if key not in ("machine", "result", "cost")}
        print(what, json.dumps(shown)[:300], flush=True)

    for _ in range(arguments.repeats):
        with tempfile.TemporaryDirectory() as folder:
            paths = list(variants(folder, arguments.candidates, arguments.form))
            verdicts, took_s = judge(paths[:1], row_count, columns)
            machine = verdicts[0]["machine"]["gpu"]
            keep("first", machine=machine, whole_s=took_s, **summary(verdicts[0]))
            verdicts, took_s = judge(paths, row_count, columns)
            for index, verdict in enumerate(verdicts):
                keep(
                    "warm",
                    machine=machine,
                    starts_the_reference=index == 0,
                    total_s=verdict["cost"]["total_s"],
                    **summary(verdict),
                )
            keep("call", machine=machine, whole_s=took_s, candidates=len(paths))
        if arguments.no_kernelbench:
            continue
        command = [PYTHON, str(ROOT / "bench" / "gpu_kernelbench_path.py")]
        command += [str(ROOT / "problems" / "level1" / "softmax.py"), str(KERNEL)]
        command += ["--set", f"ROWS={row_count}", "--set", f"COLUMNS={columns}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode != 0:
            raise SystemExit(done.stderr[-2000:])
        keep("kernelbench", machine=machine, **json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    main()
