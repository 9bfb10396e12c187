"""The judge's clock against CUPTI's, for the same kernel on the same GPU: what `assay judge` says
of kernels/softmax/one_read.cu, and what CUPTI (through PyTorch's profiler) says of as many launches
in a row, each on memory of its own, by a process that has nothing to do with the judge. It replays
them as a graph: launched from Python one by one they would wait for Python. Appends one JSON object
a size to RESULTS:

    python3 bench/gpu_clock.py RESULTS.jsonl [--rounds 15]

`judge_ns`: a call of a block, the median over blocks, with the doorbell and the wait for the
device in it. `events_ns`: between CUDA events around the replay, without a profiler, which makes
kernels of some microseconds longer. `wall_ns`: by that process's own clock around the replay and
the wait for it, which has launching and waiting in it as `judge_ns` has; what `judge_ns` is longer
than that is the judge's. `cupti_ns`: from the first kernel's begin to the last one's end, by the
number of launches; `kernel_ns`: the mean of the kernels' own durations, which leaves gaps out.
Needs CuPy.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import time

import rows

ROOT = pathlib.Path(__file__).resolve().parents[1]
ASSAY = os.environ.get("ASSAY_BINARY", str(ROOT / "build" / "release" / "assay"))
KERNEL = ROOT / "kernels" / "softmax" / "one_read.cu"
SIZES = ((256, 1024), (1024, 2048), (4096, 2560), (8192, 8192))  # about 3, 7, 20 and 140 us


def judge(row_count, columns):
    """The headline baseline's record of one verdict."""
    command = [ASSAY, "judge", "softmax", str(KERNEL), "--device", "cuda", "--json", "-q"]
    command += ["--no-save", "--set", f"ROWS={row_count}", "--set", f"COLUMNS={columns}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    verdict = json.loads(done.stdout)
    return verdict["machine"]["gpu"], verdict["speed"]["baselines"]["eager"]


def profile(row_count, columns, launches, rounds):
    """Medians over rounds: (events_ns, wall_ns, cupti_ns, kernel_ns) of one launch."""
    import cupy
    import torch

    source = KERNEL.read_text(encoding="utf-8")
    block = int(re.search(r"//! *tune +BLOCK *= *(\d+)", source).group(1))
    module = cupy.RawModule(code=f"#define BLOCK {block}\n#define COLUMNS {columns}\n{source}")
    kernel = module.get_function("softmax")
    inputs = [torch.randn(row_count, columns, device="cuda") for _ in range(launches)]
    outputs = [torch.empty_like(x) for x in inputs]
    pushes_out = torch.empty(
        3 * torch.cuda.get_device_properties(0).L2_cache_size // 4, device="cuda"
    )

    def launch_all():
        with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
            for x, out in zip(inputs, outputs):
                kernel((row_count,), (block,), (x.data_ptr(), out.data_ptr()))

    launch_all()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launch_all()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    between, walls, spans, durations = [], [], [], []
    for _ in range(rounds):
        pushes_out.fill_(1)
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        between.append(begin.elapsed_time(end) * 1e6 / launches)
    for _ in range(rounds):
        pushes_out.fill_(1)
        torch.cuda.synchronize()
        before_ns = time.perf_counter_ns()
        graph.replay()
        torch.cuda.synchronize()
        walls.append((time.perf_counter_ns() - before_ns) / launches)
    for _ in range(rounds):
        pushes_out.fill_(1)
        torch.cuda.synchronize()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
            graph.replay()
            torch.cuda.synchronize()
        events = [e for e in profiler.profiler.kineto_results.events() if e.name() == "softmax"]
        if len(events) != launches:
            raise SystemExit(f"{len(events)} kernels were seen, {launches} launched")
        begins = [event.start_ns() for event in events]
        ends = [event.start_ns() + event.duration_ns() for event in events]
        spans.append((max(ends) - min(begins)) / launches)
        durations.append(statistics.mean(event.duration_ns() for event in events))
    return tuple(statistics.median(values) for values in (between, walls, spans, durations))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    for row_count, columns in SIZES:
        gpu, record = judge(row_count, columns)
        launches = record["calls_per_block"]
        times = profile(row_count, columns, launches, arguments.rounds)
        events_ns, wall_ns, cupti_ns, kernel_ns = times
        row = {
            "gpu": gpu,
            "size": [row_count, columns],
            "launches": launches,
            "judge_ns": record["candidate_time_ns"],
            "replayed": record["launched"] is not None,
            "events_ns": events_ns,
            "wall_ns": wall_ns,
            "cupti_ns": cupti_ns,
            "kernel_ns": kernel_ns,
            "judge_over_cupti": record["candidate_time_ns"] / cupti_ns,
            "judge_over_events": record["candidate_time_ns"] / events_ns,
            "rounds": arguments.rounds,
        }
        rows.append(arguments.results, row)
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
