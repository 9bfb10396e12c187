"""Profiles a forward, operator by operator, by PyTorch's profiler."""

import json
import time

import torch

_CALLS_MAX = 200


def profile(forward, milliseconds):
    """Calls forward() for about that long after a warm-up. Returns JSON: {"calls", "wall_ns" of one
    call without the profiler (median), "operators": [{"name", "calls", "self_ns"}]}, the latter two
    of one forward. The profiler slows short operators down: its times are shares, not measurements.
    """
    end = time.monotonic() + milliseconds / 2e3
    walls = []
    while len(walls) < 3 or (time.monotonic() < end and len(walls) < _CALLS_MAX):
        begin = time.perf_counter_ns()
        forward()
        walls.append(time.perf_counter_ns() - begin)
    calls = max(1, min(len(walls), int(milliseconds / 2 * 1e6 / max(1, min(walls)))))
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as recorded:
        for _ in range(calls):
            forward()
    operators = [
        {
            "name": event.key.removeprefix("aten::").rstrip("_"),
            "calls": event.count / calls,
            "self_ns": 1e3 * event.self_cpu_time_total / calls,
        }
        for event in recorded.key_averages()
        if event.self_cpu_time_total > 0
    ]
    operators.sort(key=lambda operator: -operator["self_ns"])
    return json.dumps(
        {"calls": calls, "wall_ns": sorted(walls)[len(walls) // 2], "operators": operators}
    )
