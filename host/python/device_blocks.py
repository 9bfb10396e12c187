"""Blocks over regions that only claim to lie on a device, for tests without one."""

import ctypes
import types
import unittest
from unittest import mock

from fake_judge import POISON, Region, torch, values, wire

from assay_host import blocks, device  # noqa: E402

ILLEGAL_ADDRESS = 700


class Mapping:
    """A region on a device that is memory of this process's."""

    on_device = True

    def __init__(self, size_bytes):
        self.bytes = torch.full((size_bytes,), POISON, dtype=torch.uint8)
        self.address = self.bytes.data_ptr()
        self.size_bytes = size_bytes

    def part(self, offset, size_bytes):
        return self.bytes[offset : offset + size_bytes]


class Library:
    """Runs the given blocks, and records the requests."""

    def __init__(self, orders, result=0):
        self.orders = list(orders)
        self.result = result
        self.log = []

    def prefault(self, _plan, *regions):
        self.log.append(("prefault", *(region is not None for region in regions)))

    def await_armed(self, _loop):
        return bool(self.orders)

    def await_go(self, loop):
        order = self.orders.pop(0)
        loop._obj.order = (ctypes.c_uint32 * len(order))(*order)
        loop._obj.call_count = len(order)
        self.log.append("go")

    def synchronize_device(self):
        self.log.append("synchronise")
        return self.result

    def instantiate_graph(self, graph):
        self.log.append(("instantiate", graph))
        return 0

    def launch_graph(self):
        self.log.append("launch")
        return 0

    def start_profiler(self):
        self.log.append("start")
        return self.result

    def stop_profiler(self):
        self.log.append("stop")
        return self.result

    def start_trace(self):
        self.log.append("trace")

    def stop_trace(self):
        self.log.append("stop trace")

    def describe_device(self, result):
        return f"CUDA_ERROR_ILLEGAL_ADDRESS ({result}): an illegal memory access"

    def say_done(self, _loop, settle_ns):
        self.log.append(("done", settle_ns))


def make_plan(slot_count, *rows):
    """Makes a plan of (name, role, kind, dtype, shape), 64 bytes an argument."""
    plan = wire.Plan(slot_count=slot_count, argument_count=len(rows))
    ends = {wire.INPUT: 0, wire.PARAMETER: 0, wire.OUTPUT: 0}
    for index, (name, role, kind, dtype, shape) in enumerate(rows):
        spec = plan.arguments[index]
        spec.name, spec.role, spec.kind, spec.rank = name, role, kind, len(shape)
        spec.dtype = values.DTYPE_NUMBERS[dtype] if dtype else 0
        spec.shape[: len(shape)] = shape
        spec.offset = ends[role]
        ends[role] += 64
    plan.input_stride, plan.output_stride = ends[wire.INPUT], ends[wire.OUTPUT]
    plan.weights_stride = ends[wire.PARAMETER]
    return plan


SCALED = (
    (b"x", wire.INPUT, wire.TENSOR, torch.float32, (4,)),
    (b"n", wire.INPUT, wire.INT, None, ()),
    (b"out", wire.OUTPUT, wire.TENSOR, torch.float32, (4,)),
)


class BlocksCase(unittest.TestCase):
    """Three slots that claim to lie on a device, and blocks over them."""

    def setUp(self):
        self.plan = make_plan(3, *SCALED)
        self.numbers = Region(3 * self.plan.input_stride)
        self.regions = {
            wire.INPUTS: Mapping(3 * self.plan.input_stride),
            wire.OUTPUTS: Mapping(3 * self.plan.output_stride),
            wire.NUMBERS: self.numbers,
        }
        for slot in range(3):
            self.set_number(slot, slot + 2)
        self.slots = values.Slots(self.plan, self.regions, None)

    def set_number(self, slot, value):
        offset = slot * self.plan.input_stride + 64
        values.write_scalar(self.numbers, wire.INT, offset, value)

    def run_blocks(
        self,
        library,
        forward,
        same=None,
        restore=lambda: None,
        results=wire.INTO_SLOTS,
        ahead=(),
        profile=False,
        trace=False,
    ):
        """ahead: the order that the host gets before each block, as for a replay."""
        report, control = wire.Report(), wire.Control(
            results=results, replay=bool(ahead), profile=profile, trace=trace
        )
        control.order[: len(ahead)], control.call_count = ahead, len(ahead)
        loop = wire.BlockLoop(control=ctypes.addressof(control), report=ctypes.addressof(report))
        first = types.SimpleNamespace(errors=[])
        first.note = first.errors.append
        with mock.patch.object(device, "cost_ns", lambda work, wait: (work(), wait(), 1000)[2]):
            forwards = [forward] * self.slots.count
            blocks.run_blocks(library, loop, self.slots, forwards, same or {}, restore, first)
        return report, first.errors
