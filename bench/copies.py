"""What a Python program saves that computes into the place its result is copied to: a softmax with
and without the copy, on one core, in blocks of calls with memory of their own. Appends one JSON
object a size to RESULTS:

    /usr/bin/python3 bench/copies.py RESULTS.jsonl

Times of one call [ns], medians over rounds in turn: `copied`, with a copy; `direct`, into that
place; `copy`, what the copy takes by a clock around it, as the python host reads it.
"""
import pathlib
import statistics
import sys
import time

import torch

import rows

SIZES = ((64, 256), (128, 512), (256, 256), (512, 1024), (1024, 2048))
CALLS, ROUNDS = 60, 30


def per_call(calls, run):
    begin = time.perf_counter_ns()
    run()
    return (time.perf_counter_ns() - begin) / calls


def measure(shape):
    inputs = [torch.randn(*shape) for _ in range(CALLS)]
    outputs = [torch.empty(*shape) for _ in range(CALLS)]
    spent_ns = 0

    def copied():
        nonlocal spent_ns
        for x, out in zip(inputs, outputs):
            result = torch.softmax(x, dim=1)
            begin = time.perf_counter_ns()
            out.copy_(result)
            spent_ns += time.perf_counter_ns() - begin

    def direct():
        for x, out in zip(inputs, outputs):
            torch.softmax(x, dim=1, out=out)

    times = {"copied": [], "direct": [], "copy": []}
    for _ in range(ROUNDS):
        spent_ns = 0
        times["copied"].append(per_call(CALLS, copied))
        times["copy"].append(spent_ns / CALLS)
        times["direct"].append(per_call(CALLS, direct))
    return {name: statistics.median(values) for name, values in times.items()}


def main():
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    for shape in SIZES:
        found = measure(shape)
        saved = (found["copied"] - found["direct"]) / found["copy"]
        row = {"torch": torch.__version__, "size": shape, **found, "saved_over_copy": saved}
        rows.append(pathlib.Path(sys.argv[1]), row)
        print(row)


if __name__ == "__main__":
    main()
