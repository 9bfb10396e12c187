"""How much a measurement on a GPU is disturbed by other processes that start CUDA meanwhile.

    python3 bench/gpu_context_noise.py [--out ROWS.jsonl] [--seconds 6] [--rounds 3]

Blocks of one kernel (20 calls of about 95 us) are timed by the processor's clock, in turns with
and without four processes that make and end contexts all the time, on other cores. A row for each
turn has the median of its blocks, their 90th and 99th percentile [us], the share of blocks over
the quiet median by 2% or more, and how many contexts were made. Decides what a judge lets others do
while it measures (src/gpu/turns.h).
"""
import argparse
import ctypes
import json
import multiprocessing
import os
import statistics
import time

PROCESSES = 4
CALLS = 20


def make_contexts(cores, go, count):
    """Makes and ends contexts of the driver's while `go` is set. Errors of the driver end it."""
    os.sched_setaffinity(0, cores)
    cuda = ctypes.CDLL("libcuda.so.1")
    if cuda.cuInit(0) != 0:
        return
    context = ctypes.c_void_p()
    while True:
        go.wait()
        if cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) != 0:
            return
        cuda.cuDevicePrimaryCtxRelease(0)
        with count.get_lock():
            count.value += 1


def time_blocks(torch, x, seconds):
    """Returns the times of blocks [us]."""
    times = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        begin = time.perf_counter_ns()
        for _ in range(CALLS):
            torch.mul(x, 1.5, out=x)
        torch.cuda.synchronize()
        times.append((time.perf_counter_ns() - begin) / 1000)
    return times


def row_of(turn, disturbed, times, quiet_us, contexts):
    cuts = statistics.quantiles(times, n=100)
    return {
        "turn": turn,
        "contexts_beside": disturbed,
        "blocks": len(times),
        "median_us": round(statistics.median(times), 2),
        "p90_us": round(cuts[89], 2),
        "p99_us": round(cuts[98], 2),
        "share_over_2_percent": round(sum(t > 1.02 * quiet_us for t in times) / len(times), 4),
        "contexts": contexts,
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out")
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    multiprocessing.set_start_method("spawn")
    cores = sorted(os.sched_getaffinity(0))
    go, count = multiprocessing.Event(), multiprocessing.Value("q", 0)
    others = [
        multiprocessing.Process(
            target=make_contexts, args=(set(cores[:-4]) or set(cores), go, count), daemon=True
        )
        for _ in range(PROCESSES)
    ]
    for process in others:
        process.start()
    os.sched_setaffinity(0, set(cores[-4:]))
    import torch

    x = torch.ones(32 * 1024 * 1024, device="cuda")  # 128 MiB, read and written
    time_blocks(torch, x, 1)
    quiet_us = None
    for turn in range(2 * arguments.rounds):
        disturbed = turn % 2 == 1
        if disturbed:
            go.set()
            time.sleep(0.5)
        before = count.value
        times = time_blocks(torch, x, arguments.seconds)
        made = count.value - before
        go.clear()
        if quiet_us is None:
            quiet_us = statistics.median(times)
        row = row_of(turn, disturbed, times, quiet_us, made)
        row["card"] = torch.cuda.get_device_name()
        line = json.dumps(row)
        print(line, flush=True)
        if arguments.out:
            with open(arguments.out, "a", encoding="utf-8") as out:
                out.write(line + "\n")
        time.sleep(0.5)
    for process in others:
        process.terminate()


if __name__ == "__main__":
    main()
