"""The bandwidth of one process while another gives memory back, which the driver then clears; and
whether the time of a short flush shows it.

    python3 bench/gpu_given_back.py

Needs a GPU with some 60 GiB free, and PyTorch.
"""

import ctypes
import json
import subprocess
import sys
import time

import torch

_ELEMENTS = 4096 * 393216  # of KernelBench's ReLU, level 1, 19
_SIZES_GIB = (1, 4, 16, 48)
_FLUSH_FACTORS = (3, 8, 32)  # of the second-level cache


def give_back():
    """The other process: takes and frees memory of each size when a line comes, and says when."""
    torch.zeros(1, device="cuda")
    for line in sys.stdin:
        taken = torch.empty(int(line) << 30, dtype=torch.uint8, device="cuda").fill_(7)
        torch.cuda.synchronize()
        time.sleep(0.3)
        del taken
        begin = time.monotonic()
        torch.cuda.empty_cache()
        print(json.dumps([begin, time.monotonic()]), flush=True)


def free(other, gibibytes):
    """Returns when the other process began and ended to free so much."""
    other.stdin.write(f"{gibibytes}\n")
    other.stdin.flush()
    return json.loads(other.stdout.readline())


def calls(x, y, seconds, rows):
    """Adds (begin, time) of calls in a row."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        torch.cuda.synchronize()
        begin = time.monotonic()
        torch.clamp(x, min=0, out=y)
        torch.cuda.synchronize()
        rows.append((begin, (time.monotonic() - begin) * 1e3))


def flush_us(driver, memory, size_bytes):
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    first.record()
    driver.cuMemsetD32Async(
        ctypes.c_uint64(memory.data_ptr()), 5, ctypes.c_size_t(size_bytes // 4), None
    )
    last.record()
    torch.cuda.synchronize()
    return first.elapsed_time(last) * 1e3


def show(name, times):
    times = sorted(times)
    parts = {f"p{share}": times[len(times) * share // 100] for share in (5, 25, 50, 75, 95)}
    print(name, json.dumps({key: round(value, 1) for key, value in parts.items()}), "us")


def main():
    command = [sys.executable, __file__, "give back"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        x = torch.rand(_ELEMENTS, device="cuda")
        y = torch.empty_like(x)
        rows = []
        calls(x, y, 0.5, rows)
        quiet_ms = sorted(time_ms for _, time_ms in rows)[len(rows) // 2]
        print(f"undisturbed {quiet_ms:.3f} ms")
        for gibibytes in _SIZES_GIB:
            # It waits 0.3 s before it frees, so that the calls here surround that.
            other.stdin.write(f"{gibibytes}\n")
            other.stdin.flush()
            rows = []
            calls(x, y, 1.5, rows)
            begin, end = json.loads(other.stdout.readline())
            slow = [at for at, time_ms in rows if at > begin and time_ms > 1.03 * quiet_ms]
            last_ms = (max(slow) - end) * 1e3 if slow else 0
            most = max(time_ms for at, time_ms in rows if at > begin)
            print(
                f"{gibibytes} GiB: freed in {(end - begin) * 1e3:.1f} ms; {len(slow)} slow calls, "
                f"the last {last_ms:.0f} ms later; the slowest {most:.2f} ms"
            )
        driver = ctypes.CDLL("libcuda.so.1")
        l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size
        for factor in _FLUSH_FACTORS:
            size_bytes = factor * l2_bytes
            show(f"{factor} x L2", [flush_us(driver, x, size_bytes) for _ in range(200)])
            free(other, 24)
            end = time.monotonic() + 0.04
            times = []
            while time.monotonic() < end:
                times.append(flush_us(driver, x, size_bytes))
            show(f"{factor} x L2, while 24 GiB are cleared", times)
            time.sleep(1)
        other.stdin.close()


if __name__ == "__main__":
    give_back() if sys.argv[1:] else main()
