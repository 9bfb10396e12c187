"""Measures every variant of a candidate with `//! tune` lines, for tuner_replay.

    bench/tuner_table.py kernels/matmul/tunable.cpp 128,128 128,128 128,128 --out table.jsonl

The shapes are those of the arguments: float32, the last one is the output. Each variant is compiled
as the judge does, and called in a process of its own, without a sandbox: the time is the shortest
of its rounds [ns a call]. These are no verdicts: a table for comparing choosers needs thousands of
times, made alike. Rows that stand in the file are not measured again.
"""

import argparse
import array
import ctypes
import itertools
import json
import os
import pathlib
import random
import re
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROUNDS, ROUND_S = 12, 0.003


class Tensor(ctypes.Structure):  # DLTensor
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("rank", ctypes.c_int32),
        ("dtype", ctypes.c_uint8 * 4),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Kernel(ctypes.Structure):  # AssayKernel
    _fields_ = [
        ("abi_version", ctypes.c_uint32),
        ("language", ctypes.c_uint32),
        ("parameter_count", ctypes.c_size_t),
        ("parameters", ctypes.c_void_p),
        ("declaration", ctypes.c_char_p),
        ("invoke", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
    ]


def points_of(source):
    """Yields {name: value} for all points that the rules allow, in the order of the lines."""
    tunes = [
        (name, [int(value) for value in values.split()])
        for name, values in re.findall(r"^//! tune\s+(\w+)\s*=\s*(.*)$", source, re.M)
    ]
    rules = re.findall(r"^//! require\s+(.*)$", source, re.M)
    for values in itertools.product(*(values for _, values in tunes)):
        point = dict(zip([name for name, _ in tunes], values))
        if all(eval(rule.replace("/", "//"), {}, point) for rule in rules):
            yield point


def tensor_of(shape, values):
    rank = len(shape)
    strides = [1] * rank
    for axis in range(rank - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    data = array.array("f", values)
    padded = (ctypes.c_float * (len(data) + 16))()
    start = (-ctypes.addressof(padded) // 4) % 16  # on a cache line, as slots are
    ctypes.memmove(ctypes.addressof(padded) + 4 * start, data.buffer_info()[0], 4 * len(data))
    tensor = Tensor(
        ctypes.addressof(padded) + 4 * start,
        (ctypes.c_int32 * 2)(1, 0),
        rank,
        (ctypes.c_uint8 * 4)(2, 32, 1, 0),
        (ctypes.c_int64 * rank)(*shape),
        (ctypes.c_int64 * rank)(*strides),
        0,
    )
    return tensor, padded


def time_ns(library, shapes):
    numbers = random.Random(1)
    made = [
        tensor_of(shape, [numbers.gauss(0, 1) for _ in range(eval("*".join(map(str, shape))))])
        for shape in shapes
    ]
    kernel = Kernel.in_dll(ctypes.CDLL(library), "assay_kernel_v1")
    arguments = (ctypes.c_void_p * len(made))(*(ctypes.addressof(tensor) for tensor, _ in made))
    kernel.invoke(arguments)
    begin = time.perf_counter_ns()
    kernel.invoke(arguments)
    calls = max(1, int(ROUND_S * 1e9 / max(1, time.perf_counter_ns() - begin)))
    best = None
    for _ in range(ROUNDS):
        begin = time.perf_counter_ns()
        for _ in range(calls):
            kernel.invoke(arguments)
        took = (time.perf_counter_ns() - begin) / calls
        best = took if best is None else min(best, took)
    return best


def time_in_child(library, shapes):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, str(time_ns(library, shapes)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return float(text) if text else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("shapes", nargs="+", help="128,128 for each argument")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--compilers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1e9, help="ends after this time")
    options = parser.parse_args()
    shapes = [[int(size) for size in text.split(",")] for text in options.shapes]
    points = list(points_of(options.source.read_text()))
    random.Random(1).shuffle(points)  # a drift of the machine does not look like a gradient
    lines = options.out.read_text().splitlines() if options.out.exists() else []
    known = {json.dumps(json.loads(line)["point"]) for line in lines}
    todo = [point for point in points if json.dumps(point) not in known]
    end = time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.compilers) as pool:

        def compiled(numbered):
            number, point = numbered
            library = f"{folder}/{number}.so"
            if time.monotonic() > end:
                return point, None
            command = ["g++", "-O3", "-march=native", "-std=c++20", "-fPIC", "-shared", "-fopenmp"]
            command += [f"-I{ROOT}/include", "-o", library, str(options.source)]
            done = subprocess.run(command + [f"-D{n}={v}" for n, v in point.items()],
                                  stderr=subprocess.DEVNULL)
            return point, library if done.returncode == 0 else ""

        with options.out.open("a") as out:
            for point, library in pool.map(compiled, enumerate(todo)):
                if library is None:
                    continue
                took = time_in_child(library, shapes) if library else None
                out.write(json.dumps({"point": point, "ns": took}) + "\n")
                out.flush()
                if library:
                    os.unlink(library)


if __name__ == "__main__":
    main()
