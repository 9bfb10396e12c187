"""Does a baseline take longer with one queue between its process and the device
(CUDA_DEVICE_MAX_CONNECTIONS=1) than with the driver's own number? Appends a row for each baseline
and mode to RESULTS:

    python3 bench/queues.py RESULTS.jsonl [--seconds 45]

Processes with one queue and with the driver's number take turns, as forks of one that has imported
PyTorch; each times all baselines, eager and by torch.compile, in blocks of calls. A row has the
medians of the blocks of each process [us a call], and "ratio", the median of those with one queue
over that of the others. "apart" is the same between the first and the second half of the processes
with the driver's number: what identical processes differ by. "lstm" runs under cuDNN, which has
streams of its own. A first process for each baseline fills the cache of torch.compile.
"""
import argparse
import json
import os
import pathlib
import statistics
import sys
import time
import traceback

import torch

import rows

BLOCK_S = 0.002
BASELINES = {
    "gemm_epilogue": (
        lambda nn: nn.Sequential(nn.Linear(1024, 1024), nn.GELU()),
        (1024, 1024),
    ),
    "conv_block": (
        lambda nn: nn.Sequential(nn.Conv2d(64, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU()),
        (16, 64, 56, 56),
    ),
    "layer_norm": (lambda nn: nn.LayerNorm(1024), (4096, 1024)),
    "small_calls": (
        lambda nn: nn.Sequential(*(layer() for layer in (nn.Tanh, nn.SiLU, nn.GELU, nn.ReLU) * 3)),
        (64, 64),
    ),
    "lstm": (lambda nn: nn.LSTM(512, 512, num_layers=2, batch_first=True), (16, 32, 512)),
}


def modes():
    return ["eager", "compiled"] if hasattr(torch, "compile") else ["eager"]


def synchronize(device):
    if device == "cuda":
        torch.cuda.synchronize()


def median_of_blocks(call, device, seconds):
    """The median time of a call in blocks of about BLOCK_S [us]."""
    for _ in range(10):
        call()
    synchronize(device)
    begin = time.perf_counter()
    for _ in range(10):
        call()
    synchronize(device)
    calls = max(1, round(BLOCK_S / (time.perf_counter() - begin) * 10))
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        begin = time.perf_counter_ns()
        for _ in range(calls):
            call()
        synchronize(device)
        times.append((time.perf_counter_ns() - begin) / calls / 1000)
    return statistics.median(times)


def time_baselines(names, device, seconds):
    """{"gemm_epilogue eager": us, ...}; each as often as `seconds` holds."""
    torch.set_num_threads(1)
    medians = {}
    for name in names:
        make, shape = BASELINES[name]
        torch.manual_seed(0)
        module = make(torch.nn).to(device).eval()
        x = torch.randn(*shape, device=device)
        for mode in modes():
            forward = torch.compile(module) if mode == "compiled" else module
            with torch.no_grad():
                medians[f"{name} {mode}"] = median_of_blocks(lambda: forward(x), device, seconds)
    return medians


class Fork:
    """A fork of this process that times baselines."""

    def __init__(self, names, connections, device, seconds):
        self._reader, writer = os.pipe()
        self._pid = os.fork()
        if self._pid != 0:
            os.close(writer)
            return
        try:
            if connections:
                os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = connections
            else:
                os.environ.pop("CUDA_DEVICE_MAX_CONNECTIONS", None)
            os.write(writer, json.dumps(time_baselines(names, device, seconds)).encode())
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)

    def result(self):
        with os.fdopen(self._reader, "rb") as file:
            text = file.read()
        os.waitpid(self._pid, 0)
        if not text:
            sys.exit("a process that timed the baselines failed: see above")
        return json.loads(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=45, help="of all, about")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    warm_ups = [Fork([name], None, options.device, 0.01) for name in BASELINES]
    for warm_up in warm_ups:
        warm_up.result()
    found = {None: [], "1": []}
    turn = 0
    took = 0.0
    while turn < 4 or time.monotonic() + took < end:
        # Turns as in ABBA: neither side is always first.
        begin = time.monotonic()
        for connections in (None, "1") if turn % 2 == 0 else ("1", None):
            found[connections].append(
                Fork(list(BASELINES), connections, options.device, 0.1).result()
            )
        took = time.monotonic() - begin
        turn += 1
    card = torch.cuda.get_device_name() if options.device == "cuda" else "cpu"
    for case in found[None][0]:
        default, one = ([process[case] for process in found[key]] for key in (None, "1"))
        half = len(default) // 2
        name, mode = case.split()
        row = {
            "baseline": name,
            "mode": mode,
            "card": card,
            "pytorch": torch.__version__,
            "processes": len(default),
            "default_us": [round(us, 3) for us in default],
            "one_us": [round(us, 3) for us in one],
            "ratio": round(statistics.median(one) / statistics.median(default), 4),
            "apart": round(
                statistics.median(default[:half]) / statistics.median(default[half:]), 4
            ),
        }
        rows.append(options.results, row)
        print(json.dumps({key: row[key] for key in ("baseline", "mode", "ratio", "apart")}))


if __name__ == "__main__":
    main()
