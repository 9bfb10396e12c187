"""Measures every variant of a device-form candidate with `//! tune` lines, for tuner_replay.

    bench/tuner_table_gpu.py kernels/matmul/tunable.cu 1024,1024 1024,1024 1024,1024 --out t.jsonl

The candidate has one launch, and the shapes are those of its arguments: float32 tensors, the last
one is the output. nvcc compiles each variant, the driver's interface launches it. The time is the
shortest of its rounds [ns a call], by events, with the second-level cache as the last call left
it. Each output is compared with the first variant's. These are no verdicts: tuner_table.py says
why. Needs nvcc and a GPU.
"""

import argparse
import array
import ctypes
import json
import math
import pathlib
import random
import re
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor

from tuner_table import points_of

ROUNDS, CALLS = 7, 5


class Driver:
    """The few functions of libcuda that launch a kernel and read events, on the first GPU."""

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        device, self.context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)
        self.call("cuCtxSetCurrent", self.context)
        name = ctypes.create_string_buffer(100)
        self.call("cuDeviceGetName", name, 100, device)
        self.name = name.value.decode()
        self.events = [ctypes.c_void_p() for _ in range(2)]
        for event in self.events:
            self.call("cuEventCreate", ctypes.byref(event), 0)

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status:
            raise RuntimeError(f"{name}: error {status} of CUDA's driver")

    def upload(self, values):
        pointer = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(4 * len(values)))
        address = ctypes.c_void_p(values.buffer_info()[0])
        self.call("cuMemcpyHtoD_v2", pointer, address, ctypes.c_size_t(4 * len(values)))
        return pointer

    def download(self, pointer, count):
        values = array.array("f", bytes(4 * count))
        address = ctypes.c_void_p(values.buffer_info()[0])
        self.call("cuMemcpyDtoH_v2", address, pointer, ctypes.c_size_t(4 * count))
        return values

    def time_ns(self, cubin, name, grid, block, pointers):
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoad", ctypes.byref(module), str(cubin).encode())
        self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        arguments = (ctypes.c_void_p * len(pointers))(*map(ctypes.addressof, pointers))
        best = math.inf
        for _ in range(ROUNDS + 1):  # the first one warms up
            self.call("cuEventRecord", self.events[0], None)
            for _ in range(CALLS):
                self.call("cuLaunchKernel", function, *grid, *block, 0, None, arguments, None)
            self.call("cuEventRecord", self.events[1], None)
            self.call("cuEventSynchronize", self.events[1])
            took = ctypes.c_float()
            self.call("cuEventElapsedTime", ctypes.byref(took), *self.events)
            best = min(best, took.value * 1e6 / CALLS)
        self.call("cuModuleUnload", module)
        return best


def plan_of(source, point, shapes):
    """Returns the kernel's name, grid, block and macros at one point of the space."""
    launch = re.search(
        r"^//! launch\s+(\w+) grid=\((.*)\) block=\((.*)\) args=\((.*)\)$", source, re.M)
    tensors = {name.strip(): shape for name, shape in zip(launch[4].split(","), shapes)}

    def value_of(text, names):
        text = re.sub(r"(\w+)\.size\((\d+)\)", lambda m: str(tensors[m[1]][int(m[2])]), text)
        functions = {"ceil_div": lambda a, b: -(-a // b), "min": min, "max": max}
        return eval(text.replace("/", "//"), functions | names)

    names = dict(point)
    for name, text in re.findall(r"^//! constant\s+(\w+)\s*=\s*(.*)$", source, re.M):
        names[name] = value_of(text, names)
    three = [value_of(f"({text},)", names) for text in (launch[2], launch[3])]
    three = [tuple(list(sizes) + [1] * (3 - len(sizes))) for sizes in three]
    return launch[1], *three, names


def differs(mine, other):
    return any(abs(a - b) > 1e-3 * (1 + abs(b)) for a, b in zip(mine[::997], other[::997]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("shapes", nargs="+", help="1024,1024 for each argument")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--compilers", type=int, default=8)
    parser.add_argument("--architecture", default="sm_90a")
    options = parser.parse_args()
    shapes = [[int(size) for size in text.split(",")] for text in options.shapes]
    source = options.source.read_text()
    points = list(points_of(source))
    random.Random(1).shuffle(points)  # a drift of the clock does not look like a gradient
    numbers = random.Random(1)
    driver = Driver()
    tensors = [array.array("f", (numbers.gauss(0, 1) for _ in range(math.prod(shape))))
               for shape in shapes]
    pointers = [driver.upload(values) for values in tensors]
    first = None
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.compilers) as pool:

        def compiled(numbered):
            number, point = numbered
            cubin = pathlib.Path(folder) / f"{number}.cubin"
            *_, names = plan_of(source, point, shapes)
            command = ["nvcc", "-x", "cu", "-cubin", f"-arch={options.architecture}"]
            command += ["-o", str(cubin), str(options.source)]
            done = subprocess.run(command + [f"-D{n}={v}" for n, v in names.items()],
                                  stderr=subprocess.PIPE, text=True)
            return point, cubin, done.stderr if done.returncode else ""

        with options.out.open("w") as out:
            for point, cubin, error in pool.map(compiled, enumerate(points)):
                if error:
                    raise SystemExit(f"tuner_table_gpu: {point} does not build: {error}")
                name, grid, block, _ = plan_of(source, point, shapes)
                took = driver.time_ns(cubin, name, grid, block, pointers)
                result = driver.download(pointers[-1], math.prod(shapes[-1]))
                first = first or result
                if differs(result, first):
                    raise SystemExit(f"tuner_table_gpu: {point} differs from the first variant")
                row = {"point": point, "ns": took, "gpu": driver.name}
                out.write(json.dumps(row) + "\n")
                cubin.unlink()


if __name__ == "__main__":
    main()
