"""Blocks that are CUDA graphs, without a CUDA device (whole hosts on one: device_test.py)."""

import contextlib
import types
import unittest
from unittest import mock

from device_blocks import ILLEGAL_ADDRESS, SCALED, BlocksCase, Library, make_plan
from fake_judge import values

from assay_host import graph  # noqa: E402


class FakeGraphs:
    """Stands for torch.cuda: a graph is the list of calls during its capture."""

    def __init__(self):
        self.log = []
        self.capturing = False
        self.Stream = object
        self.graph_pool_handle = lambda: "pool"
        self.synchronize = lambda: self.log.append("synchronise")
        self.empty_cache = lambda: self.log.append("empty the cache")
        self.stream = lambda _stream: contextlib.nullcontext()
        fakes = self

        class CUDAGraph:
            def __init__(self, keep_graph):
                assert keep_graph
                self.number = fakes.log.count("capture")

            def capture_begin(self, pool, capture_error_mode):
                assert (pool, capture_error_mode) == ("pool", "thread_local")
                fakes.capturing = True
                fakes.log.append("capture")

            def capture_end(self):
                fakes.capturing = False
                fakes.log.append("end")

            def raw_cuda_graph(self):
                return self.number

        self.CUDAGraph = CUDAGraph


class Graphs(unittest.TestCase):
    def setUp(self):
        self.cuda = FakeGraphs()
        self.cuda.current_device = lambda: 0
        ended = self.ended_pools = []
        allocator = types.SimpleNamespace(
            _cuda_endAllocateToPool=lambda device, pool: ended.append((device, pool))
        )
        fake_torch = types.SimpleNamespace(
            cuda=self.cuda, zeros=lambda *_args, **_names: None, _C=allocator
        )
        patch = mock.patch.object(graph, "torch", fake_torch)
        patch.start()
        self.addCleanup(patch.stop)
        self.library = Library([])
        self.graph = graph.BlockGraph(self.library)

    def capture(self, name):
        return self.graph.capture(
            lambda: self.cuda.log.append(name), lambda: self.cuda.log.append("warm up")
        )

    def test_each_block_has_a_graph_of_its_own_and_the_memory_of_all_stays(self):
        self.assertTrue(self.capture("first"))
        self.assertEqual(
            self.cuda.log,
            ["synchronise", "warm up", "synchronise", "empty the cache"]
            + ["capture", "end"]  # the one that stays
            + ["capture", "first", "end"],
        )
        self.assertTrue(self.capture("second"))
        self.assertEqual(self.cuda.log[-3:], ["capture", "second", "end"])
        self.assertEqual(self.graph.launch(), 0)
        self.assertEqual(self.library.log, [("instantiate", 1), ("instantiate", 2), "launch"])

    def test_memory_is_given_back_once_and_captured_anew(self):
        self.graph.release()
        self.assertEqual(self.cuda.log, [])
        self.capture("first")
        del self.cuda.log[:]
        self.graph.release()
        self.graph.release()
        self.assertEqual(self.cuda.log, ["empty the cache"])
        self.assertTrue(self.capture("second"))
        self.assertEqual(self.cuda.log.count("warm up"), 1)

    def test_work_that_fails_in_a_capture_ends_it_and_none_is_tried_again(self):
        def waits():
            assert self.cuda.capturing
            raise RuntimeError("operation not permitted when stream is capturing")

        self.assertFalse(self.graph.capture(waits, lambda: None))
        self.assertFalse(self.cuda.capturing)
        self.assertEqual(self.ended_pools, [(0, "pool")])
        tried = len(self.cuda.log)
        self.assertFalse(self.capture("another"))
        self.assertEqual((len(self.cuda.log), self.library.log), (tried, []))

    def test_a_graph_that_cuda_refuses_is_none(self):
        self.library.instantiate_graph = lambda _graph: ILLEGAL_ADDRESS
        self.assertFalse(self.capture("work"))

    def test_a_pytorch_without_such_graphs_is_left_alone(self):
        del self.cuda.CUDAGraph
        self.assertFalse(self.capture("work"))


class ReplayedBlocks(BlocksCase):
    """Blocks of a problem without numbers, whose graphs are the calls themselves."""

    def setUp(self):
        super().setUp()
        self.plan = make_plan(3, SCALED[0], SCALED[2])
        self.slots = values.Slots(self.plan, self.regions, None)
        captured = self.captured = []

        class Captured:
            def __init__(self, _library):
                pass

            def capture(self, work, _warm_up):
                captured.append(work)
                return True

            def launch(self):
                captured[-1]()
                return 0

            def release(self):
                pass

        patch = mock.patch.object(graph, "BlockGraph", Captured)
        patch.start()
        self.addCleanup(patch.stop)

    def test_a_block_that_is_asked_for_is_captured_before_go_and_launched_after_it(self):
        library = Library([[2, 0]])

        def forward(x):
            library.log.append("call")
            return 2 * x

        for slot in range(3):
            self.slots.input_tensors(slot)[0].fill_(slot + 1)
            self.slots.outputs(slot)[0].fill_(-1)
        report, errors = self.run_blocks(library, forward, ahead=(2, 0))
        self.assertEqual((errors, len(self.captured)), ([], 1))
        at_go = library.log.index("go")
        self.assertNotIn("call", library.log[:at_go])
        self.assertEqual(library.log[at_go:], ["go", "call", "call", "synchronise", ("done", 2000)])
        self.assertEqual(self.slots.outputs(2)[0].tolist(), [6.0] * 4)
        self.assertEqual(self.slots.outputs(0)[0].tolist(), [2.0] * 4)

    def test_blocks_without_the_wish_or_without_a_call_are_not_captured(self):
        self.run_blocks(Library([[0], [1]]), lambda x: x)
        self.assertEqual(self.captured, [])

    def test_a_call_that_fails_while_it_is_captured_is_no_failure_of_the_block(self):
        capturing = []

        class Refuses:
            def __init__(self, _library):
                pass

            def capture(self, work, _warm_up):
                capturing.append(True)
                with contextlib.suppress(ZeroDivisionError):
                    work()
                capturing.clear()
                return False

        def forward(x):
            return 1 // (not capturing) * x

        self.slots.input_tensors(0)[0].fill_(5)
        with mock.patch.object(graph, "BlockGraph", Refuses):
            report, errors = self.run_blocks(Library([[0]]), forward, ahead=(0,))
        self.assertEqual((errors, report.replays), ([], 0))
        self.assertEqual(self.slots.outputs(0)[0].tolist(), [5.0] * 4)


if __name__ == "__main__":
    unittest.main()
