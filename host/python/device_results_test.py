"""Tests results that stay where forward put them, on a device: parts without one; whole hosts if
PyTorch has one.
"""

import os
import subprocess
import sys
import types
import unittest
from unittest import mock

from device_blocks import BlocksCase, Library, Mapping
from device_memory import DeviceHosts, DeviceRegion, cuda_is_there
from fake_judge import SUPPORT, Judge, Region, torch, wire
from sample_problems import SOFTMAX

from assay_host import device_results  # noqa: E402

MIB = 1 << 20


def segment(kind, *blocks, stream=0, **more):
    states = {"a": "active_allocated", "i": "inactive", "p": "active_pending_free"}
    blocks = [{"state": states[state], "size": size} for state, size in blocks]
    return {"segment_type": kind, "stream": stream, "blocks": blocks, **more}


class Gaps(unittest.TestCase):
    def test_free_pieces_are_named_as_they_can_be_asked_for(self):
        found = device_results.gaps(
            [
                segment("small", ("a", 512), ("i", 2 * MIB - 512)),
                segment("small", ("i", 4096), ("a", 512), ("p", 8192)),
                # Nothing so small comes from a large segment.
                segment("large", ("i", 3 * MIB), ("a", 2 * MIB), ("i", MIB), ("i", 5 * MIB)),
                segment("large", ("i", 7 * MIB), stream=9),
                segment("large", ("i", 11 * MIB), segment_pool_id=(0, 3)),
            ],
            0,
        )
        self.assertEqual(found, [4096, MIB, MIB - 512, 3 * MIB, 5 * MIB])

    def test_each_piece_finds_the_gap_that_it_was_cut_from(self):
        """Pieces in the order of their sizes did not: the last MiB found no gap, and its new
        segment had room for results.
        """
        free = [5 * MIB // 4, 3 * MIB // 10 // 512 * 512, MIB + 512, 512]
        for size in device_results.gaps([segment("small", ("i", size)) for size in free], 0):
            fits = [piece for piece in sorted(free) if piece >= size]
            self.assertTrue(fits, (size, free))
            free.remove(fits[0])
            if fits[0] > size:
                free.append(fits[0] - size)
        self.assertEqual(free, [])


class SmallPool:
    """Stands for torch with its allocator for small tensors. Cuts the first of the smallest free
    blocks that are large enough; otherwise takes a segment of 2 MiB, from the region once that is
    served. Has only the functions that a room uses.
    """

    uint8 = "uint8"

    def __init__(self, region):
        self.cuda = self
        self.cuda_stream = 0
        self._region = region
        self._served = 0
        self._segments = {}  # by address: blocks, each [address, size, is in use]

    def empty(self, size, dtype=None, device=None):
        size = -(-size // 512) * 512
        free = [
            (block[1], block[0], blocks)
            for blocks in self._segments.values()
            for block in blocks
            if not block[2] and block[1] >= size
        ]
        if not free:
            address = 1 << 30 | len(self._segments) << 21
            if self._served:
                address = self._region.address + (self._served - 1) * 2 * MIB
                self._served += 1
            self._segments[address] = [[address, 2 * MIB, False]]
            return self.empty(size)
        found, address, blocks = min(free, key=lambda each: each[:2])
        at = [block[0] for block in blocks].index(address)
        cut = [[address, size, True], [address + size, found - size, False]]
        blocks[at : at + 1] = cut[: 1 if found == size else 2]
        return Piece(address, lambda: self._free(blocks, address))

    def _free(self, blocks, address):
        at = [block[0] for block in blocks].index(address)
        blocks[at][2] = False
        for left in (at, at - 1):
            if 0 <= left < len(blocks) - 1 and not blocks[left][2] and not blocks[left + 1][2]:
                blocks[left][1] += blocks.pop(left + 1)[1]

    def empty_like(self, target):
        return self.empty(target.numel() * target.element_size())

    def serve_device_results(self, *_):
        self._served = 1

    def empty_cache(self):
        in_use = {
            address: blocks
            for address, blocks in self._segments.items()
            if any(block[2] for block in blocks)
        }
        self._segments = in_use

    def current_stream(self):
        return self

    def memory_snapshot(self):
        for address, blocks in self._segments.items():
            states = [("a" if in_use else "i", size) for _, size, in_use in blocks]
            yield segment("small", *states, address=address)


class Piece:
    def __init__(self, address, free):
        self.data_ptr = lambda: address
        self._free = free

    def __del__(self):
        self._free()


class Besides(unittest.TestCase):
    def test_no_more_is_at_hand_than_the_region_holds(self):
        """With 12 GiB free it holds one result of 256 MiB beside those of two slots. Each of a
        pair's hosts took two more elsewhere, and no memory was left.
        """
        large = 256 * MIB
        self.assertEqual(device_results.slots_besides([large], 2, (512 + 320 + 64) * MIB), 1)
        self.assertEqual(device_results.slots_besides([large], 8, (2048 + 1024 + 64) * MIB), 3)
        self.assertEqual(device_results.slots_besides([large], 4, 1024 * MIB), 0)
        self.assertEqual(device_results.slots_besides([large], 4, 1000 * MIB), 0)
        self.assertEqual(device_results.slots_besides([11 * MIB], 3, (36 + 96) * MIB), 8)
        self.assertEqual(device_results.slots_besides([100, 0], 600, 68 * MIB), 8)


class Kept(unittest.TestCase):
    def test_small_results_lie_there_once_blocks_were_entered_anew(self):
        """Memory of the host's first blocks was free then: results of 2 and 4 KiB lay there, where
        the judge cannot read them, and both sides paid for copies.
        """
        region = types.SimpleNamespace(address=1 << 40, size_bytes=64 * MIB)
        pool = SmallPool(region)
        targets = [torch.empty(512), torch.empty(512, dtype=torch.int64)]
        outputs = [targets] * 600

        def forward():
            return [pool.empty_like(target) for target in targets]

        with mock.patch.object(device_results, "torch", pool):
            weights = pool.empty(40960)
            room = device_results.Room(pool, region)
            spark = None
            for _ in range(3):
                del spark
                settling = forward()
                spark = pool.empty(4096)
                del settling
                room.get_ready(outputs)
                results = [forward() for _ in outputs]
                for piece in (piece for result in results for piece in result):
                    self.assertGreaterEqual(piece.data_ptr(), region.address)
                del results, piece
        del weights


class Room:
    """Stands for the room on a device."""

    def __init__(self):
        self.asked = []

    def get_ready(self, outputs):
        self.asked.append(len(outputs))


class Left(BlocksCase):
    def left(self, forward, orders):
        region = Mapping(64)
        region.room = Room()
        self.regions[wire.RESULTS] = region
        library = Library(orders)
        report, errors = self.run_blocks(library, forward, results=wire.LEFT)
        return library, report, errors, region.room

    def test_slots_are_left_alone_and_addresses_are_told(self):
        for slot in range(3):
            self.slots.input_tensors(slot)[0].fill_(slot + 1)
            self.slots.outputs(slot)[0].fill_(-1)
        given = []

        def forward(x, n):
            given.append(x * n)
            return given[-1]

        library, report, errors, room = self.left(forward, [[2, 0], [1]])
        self.assertEqual((errors, room.asked), ([], [3]))
        self.assertEqual(report.result_at[0], given[2].data_ptr())
        self.assertEqual(report.result_at[1], given[1].data_ptr())
        # Nothing is copied; and the device has done its work before done is said.
        self.assertEqual([each for each in library.log if each[0] == "done"], [("done", 0)] * 2)
        self.assertEqual(library.log[-2:], ["synchronise", ("done", 0)])
        for slot in (1, 2):
            self.assertEqual(self.slots.outputs(slot)[0].tolist(), [-1] * 4)

    def test_a_result_on_another_device_is_brought_to_the_slots_or_refused(self):
        _, report, errors, _ = self.left(
            lambda x, n: torch.empty(4, device="meta"), [[0]]
        )
        self.assertIn("is on meta", str(errors[0]))
        self.assertEqual(report.result_at[0], 0)


_SERVES = """
import ctypes, os, sys
sys.path.insert(0, sys.argv[1])
from assay_host import wire
library = wire.Library(wire.library_path())
allocator = ctypes.CDLL(os.path.join(sys.argv[2], "libfake_allocator.so"))
runtime = ctypes.CDLL(os.path.join(sys.argv[2], "libcudart.so.13"))
take, give = allocator.FakeAllocate, allocator.FakeRelease
take.restype, take.argtypes, give.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
MIB = 1 << 20
before = take(2 * MIB)
assert before and runtime.FakeRuntimeAllocated() == 1
begin = 1 << 40  # nobody looks into it
library.serve_device_results(begin, 61 * MIB, (ctypes.c_uint64 * 1)(11 * MIB), 1)
assert give(before) == 0 and runtime.FakeRuntimeFreed() == 1
pieces = [take(size * MIB) for size in (2, 20, 12, 2)]
assert pieces == [begin + at * MIB for at in (0, 2, 22, 34)], pieces
others = [take(size) for size in (2 * MIB - 512, 4 * MIB, 512)]
assert all(others) and not any(begin <= other < begin + 61 * MIB for other in others)
# What is given back is there for its size alone, and is waited for.
waited = runtime.FakeRuntimeWaited()
assert give(pieces[1]) == 0 and runtime.FakeRuntimeWaited() == waited + 1
assert take(12 * MIB) == begin + 36 * MIB
assert take(20 * MIB) == pieces[1]
# Full but for 12 of 60. The runtime's own again, for what does not fit.
last = take(20 * MIB)
assert last and not begin <= last < begin + 61 * MIB
assert take(12 * MIB) == begin + 48 * MIB
# No piece begins there: nothing happens.
assert give(begin + 4 * MIB) == 0 and give(begin + 1) == 0
assert not begin <= take(2 * MIB) < begin + 61 * MIB
for other in others + [last]:
    assert give(other) == 0
assert runtime.FakeRuntimeFreed() == 5
assert give(pieces[0]) == 0 and take(2 * MIB) == pieces[0]
print("served")
"""


class Served(unittest.TestCase):
    @unittest.skipUnless(
        os.path.exists(os.path.join(os.environ.get("ASSAY_FAKE_CUDA", ""), "libfake_allocator.so")),
        "the runtime without a GPU is not built",
    )
    def test_memory_comes_from_the_region_as_long_as_it_lasts(self):
        """Uses a library that is linked with the runtime, whose functions have versions."""
        ran = subprocess.run(
            [sys.executable, "-B", "-s", "-c", _SERVES]
            + [os.path.join(SUPPORT, "python"), os.environ["ASSAY_FAKE_CUDA"]],
            capture_output=True,
            text=True,
            env={"LD_PRELOAD": os.path.join(SUPPORT, "libassay_host.so")},
        )
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, "served\n", ""))


WEIGHTED = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(24, 24)
    def forward(self, x):
        scratch = torch.zeros(3 << 20, device=x.device)
        return self.layer(x) + scratch[0] * 0
def get_inputs():
    return [torch.randn(6, 24)]
def get_init_inputs():
    return []
"""
REGION_BYTES = 256 * MIB


@unittest.skipUnless(cuda_is_there(), "no CUDA device")
class OnDevice(DeviceHosts):
    """Results of whole hosts lie in the region, wherever their weights and scratch are."""

    def start_lent(self, source, slots):
        self.describe(source, slots)
        judge = self.start("reference", source)
        region = DeviceRegion(REGION_BYTES)
        answer = judge.request(wire.ATTACH, wire.RESULTS, region.size_bytes, 1, 1, fd=region.fd)
        judge.control.results = wire.LEFT
        return judge, region, answer[0]

    def test_all_results_of_all_blocks_lie_in_the_region(self):
        slots = 16
        for source in (SOFTMAX, WEIGHTED):
            judge, region, begin = self.start_lent(source, slots)
            judge.enter_blocks()
            for order in (list(range(slots)), [3], list(range(slots))[::-1] * 3):
                self.assertEqual(judge.run_block(order), 0)
                for place, slot in enumerate(order[:slots]):
                    expected = self.oracle.tensor("out", slot)
                    offset = judge.report.result_at[place] - begin
                    size_bytes = expected.numel() * expected.element_size()
                    self.assertTrue(0 <= offset <= region.size_bytes - size_bytes, offset)
                    found = region.part(offset, size_bytes).cpu().view(expected.dtype)
                    torch.testing.assert_close(found.view(expected.shape), expected)
            self.assertEqual(judge.leave_blocks()[0], 0)


class Attached(unittest.TestCase):
    def test_it_is_answered_with_where_the_host_has_it(self):
        judge = Judge()
        self.addCleanup(judge.close)
        region = Region(4096)
        region.map[100:105] = b"judge"
        answer = judge.request(wire.ATTACH, wire.RESULTS, 4096, 1, fd=region.fd)
        with open(f"/proc/{judge.pid}/mem", "rb") as memory:
            memory.seek(answer[0] + 100)
            self.assertEqual(memory.read(5), b"judge")


if __name__ == "__main__":
    unittest.main()
