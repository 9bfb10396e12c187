"""What CUDA takes to start in a process, alone and beside others that start at the same time, and
to end. Appends one JSON object a case to RESULTS:

    python3 bench/gpu_start.py RESULTS.jsonl [--processes 1 2 4 8] [--connections 0 1] [--pytorch]

"init_s" is cuInit, "context_s" the creation of a context, "allocate_s" a first allocation of 1 MiB,
"end_s" from SIGKILL until the process is gone; each the median over the processes. Connections are
CUDA_DEVICE_MAX_CONNECTIONS; 0 leaves it unset. With --pytorch each process imports PyTorch first:
"import_s", and "import_cpu_s" of its own processor time.
"""
import argparse
import ctypes
import importlib
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import time

import rows


def start_once(pytorch):
    """Starts CUDA here, says how long each step took [s], and waits to be killed."""
    times = {}
    if pytorch:
        begin, begin_cpu = time.perf_counter(), time.process_time()
        importlib.import_module("torch")
        times["import_s"] = time.perf_counter() - begin
        times["import_cpu_s"] = time.process_time() - begin_cpu
    cuda = ctypes.CDLL("libcuda.so.1")
    device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()

    def step(name, call, *arguments):
        begin = time.perf_counter()
        code = call(*arguments)
        times[name] = time.perf_counter() - begin
        if code != 0:
            raise SystemExit(f"{name}: CUDA error {code}")

    step("init_s", cuda.cuInit, 0)
    cuda.cuDeviceGet(ctypes.byref(device), 0)
    step("context_s", cuda.cuDevicePrimaryCtxRetain, ctypes.byref(context), device)
    cuda.cuCtxSetCurrent(context)
    step("allocate_s", cuda.cuMemAlloc_v2, ctypes.byref(memory), ctypes.c_size_t(1 << 20))
    print(json.dumps(times), flush=True)
    signal.pause()


def case(processes, connections, pytorch):
    environment = dict(os.environ)
    if connections:
        environment["CUDA_DEVICE_MAX_CONNECTIONS"] = str(connections)
    command = [sys.executable, __file__, "--once"] + (["--pytorch"] if pytorch else [])
    begin = time.perf_counter()
    started = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(processes)
    ]
    times = [json.loads(process.stdout.readline()) for process in started]
    all_s = time.perf_counter() - begin
    begin = time.perf_counter()
    for process in started:
        process.kill()
    for process in started:
        process.wait()
    end_s = time.perf_counter() - begin
    medians = {key: statistics.median(each[key] for each in times) for key in times[0]}
    return {
        "processes": processes,
        "connections": connections,
        "pytorch": pytorch,
        **medians,
        "all_started_s": all_s,
        "end_s": end_s,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=pathlib.Path, nargs="?")
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--connections", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--pytorch", action="store_true", help="import it first")
    arguments = parser.parse_args()
    if arguments.once:
        start_once(arguments.pytorch)
    if arguments.results is None:
        parser.error("a file for the results is missing")
    for connections in arguments.connections:
        for processes in arguments.processes:
            row = case(processes, connections, arguments.pytorch)
            rows.append(arguments.results, row)
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
