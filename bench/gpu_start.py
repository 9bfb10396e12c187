"""What CUDA takes to start in a process, alone and beside others that start at the same time, and
to end. Appends one JSON object a case to RESULTS:

    python3 bench/gpu_start.py RESULTS.jsonl [--processes 1 2 4 8] [--connections 0 1] [--pytorch]
                                             [--forked]

"init_s" is cuInit, "context_s" the creation of a context, "allocate_s" a first allocation of 1 MiB,
"end_s" from SIGKILL until the process is gone; each the median over the processes. Connections are
CUDA_DEVICE_MAX_CONNECTIONS; 0 leaves it unset. With --pytorch each process imports PyTorch first:
"import_s", and "import_cpu_s" of its own processor time; "tensor_s" is a first tensor of PyTorch's
there. With --forked one process has imported PyTorch, and the others are its forks.
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


def import_pytorch():
    begin, begin_cpu = time.perf_counter(), time.process_time()
    importlib.import_module("torch")
    return {
        "import_s": time.perf_counter() - begin,
        "import_cpu_s": time.process_time() - begin_cpu,
    }


def start_once(times, pytorch):
    """Starts CUDA here, adds how long each step took [s] to times, and waits to be killed."""
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
    if pytorch:
        begin = time.perf_counter()
        sys.modules["torch"].zeros(1, device="cuda")
        times["tensor_s"] = time.perf_counter() - begin
    os.write(1, json.dumps(times).encode() + b"\n")
    signal.pause()


def started(processes, environment, pytorch):
    """Starts them; what each said of its times, the seconds until the last had, and a way to end
    them."""
    command = [sys.executable, __file__, "--once"] + (["--pytorch"] if pytorch else [])
    begin = time.perf_counter()
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(processes)
    ]
    times = [json.loads(process.stdout.readline()) for process in running]
    all_s = time.perf_counter() - begin

    def end():
        for process in running:
            process.kill()
        for process in running:
            process.wait()

    return times, all_s, end


def forked(processes, environment):
    """As started(), of forks; the import is the one process's."""
    command = [sys.executable, __file__, "--once", "--forks", str(processes)]
    parent = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
    imported = json.loads(parent.stdout.readline())
    begin = time.perf_counter()
    parent.stdin.write("\n")
    parent.stdin.flush()
    times = [imported | json.loads(parent.stdout.readline()) for _ in range(processes)]
    all_s = time.perf_counter() - begin

    def end():
        parent.stdin.close()
        parent.wait()

    return times, all_s, end


def fork(processes):
    """Imports PyTorch, and forks once a line has come in; ends its forks at its input's end."""
    os.write(1, json.dumps(import_pytorch()).encode() + b"\n")
    sys.stdin.readline()
    children = []
    for _ in range(processes):
        child = os.fork()
        if child == 0:
            start_once({}, True)
        children.append(child)
    sys.stdin.read()
    for child in children:
        os.kill(child, signal.SIGKILL)
    for child in children:
        os.waitpid(child, 0)


def case(processes, connections, pytorch, forks):
    environment = dict(os.environ)
    if connections:
        environment["CUDA_DEVICE_MAX_CONNECTIONS"] = str(connections)
    times, all_s, end = (
        forked(processes, environment) if forks else started(processes, environment, pytorch)
    )
    begin = time.perf_counter()
    end()
    end_s = time.perf_counter() - begin
    medians = {key: statistics.median(each[key] for each in times) for key in times[0]}
    return {
        "processes": processes,
        "connections": connections,
        "pytorch": pytorch or forks,
        "forked": forks,
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
    parser.add_argument("--forked", action="store_true", help="from one that has imported it")
    parser.add_argument("--forks", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.once and arguments.forks:
        return fork(arguments.forks)
    if arguments.once:
        start_once(import_pytorch() if arguments.pytorch else {}, arguments.pytorch)
    if arguments.results is None:
        parser.error("a file for the results is missing")
    for connections in arguments.connections:
        for processes in arguments.processes:
            row = case(processes, connections, arguments.pytorch, arguments.forked)
            rows.append(arguments.results, row)
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
