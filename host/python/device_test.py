"""Tests hosts on a CUDA device: parts without one, by regions that seem to lie there; and whole."""

import ctypes
import os
import shutil
import subprocess
import sys
import unittest
from unittest import mock

from device_blocks import ILLEGAL_ADDRESS, BlocksCase, Library, Mapping
from device_memory import DeviceHosts, DeviceOracle, cuda_is_there
from fake_judge import POISON, SUPPORT, Judge, Region, Refused, failure, torch, values, wire
from sample_problems import LINEAR, SOFTMAX, problem

from assay_host import device  # noqa: E402


class Views(unittest.TestCase):
    def test_every_dtype_reads_and_writes_the_region_where_it_was_put(self):
        for dtype in values.DTYPES.values():
            mapping = Mapping(256)
            expected = torch.tensor([1, 0, 1, 1, 0, 1], dtype=dtype).view(2, 3)
            view = values.view(mapping, dtype, (2, 3), 64)
            view.copy_(expected)
            size_bytes = expected.numel() * expected.element_size()
            self.assertEqual((view.dtype, view.shape), (dtype, (2, 3)))
            self.assertEqual(view.data_ptr(), mapping.address + 64)
            self.assertTrue(bool((mapping.bytes[:64] == POISON).all()))
            self.assertTrue(bool((mapping.bytes[64 + size_bytes :] == POISON).all()))
            self.assertTrue(torch.equal(values.view(mapping, dtype, (2, 3), 64), expected))

    def test_tensors_without_elements_and_without_dimensions(self):
        mapping = Mapping(64)
        for dtype in (torch.float32, torch.bfloat16, torch.bool):
            self.assertEqual(values.view(mapping, dtype, (0, 3), 64).shape, (0, 3))
            self.assertEqual(values.view(mapping, dtype, (), 8).shape, ())

    def test_a_view_outside_of_the_region_is_refused(self):
        with self.assertRaises(ValueError):
            values.view(Mapping(64), torch.float32, (16,), 4)


class SlotsOnDevice(BlocksCase):
    def test_numbers_come_from_their_own_region(self):
        for slot in range(3):
            x, n = self.slots.arguments(slot)
            self.assertEqual(
                (x.data_ptr() - self.regions[wire.INPUTS].address, n), (128 * slot, slot + 2)
            )
        numbers = self.slots.numbers()
        self.set_number(1, 9)
        self.assertEqual(numbers.changed_slots(), {1})
        self.assertEqual(self.slots.arguments(1)[1], 9)

    def test_numbers_come_from_the_inputs_where_they_have_no_region(self):
        inputs = Region(3 * self.plan.input_stride)
        values.write_scalar(inputs, wire.INT, 64, 5)
        regions = {wire.INPUTS: inputs, wire.OUTPUTS: Region(3 * self.plan.output_stride)}
        slots = values.Slots(self.plan, regions, None)
        self.assertEqual(slots.arguments(0)[1], 5)
        self.assertFalse(slots.on_device)

    def test_the_device_has_done_its_work_when_done_is_said(self):
        library = Library([[0, 2], [1], []])

        def forward(x, n):
            library.log.append("call")
            return x * n

        for slot in range(3):
            self.slots.input_tensors(slot)[0].fill_(slot + 1)
        _, errors = self.run_blocks(library, forward, restore=lambda: library.log.append("restore"))
        self.assertEqual(errors, [])
        self.assertEqual(library.log[:2], [("prefault", False, False, False), "synchronise"])
        begins = ["restore", "synchronise", "go"]
        self.assertEqual(
            library.log[2:],
            [*begins, "call", "call", "synchronise", ("done", 2000)]
            + [*begins, "call", "synchronise", ("done", 1000)]
            + [*begins, "synchronise", ("done", 0)],
        )
        for slot in range(3):
            self.assertEqual(
                self.slots.outputs(slot)[0].tolist(), [float((slot + 1) * (slot + 2))] * 4
            )

    def test_results_that_are_kept_leave_the_slots_alone_and_lie_apart(self):
        for slot in range(3):
            self.slots.input_tensors(slot)[0].fill_(slot + 1)
            self.slots.outputs(slot)[0].fill_(-1)
        given = []

        def forward(x, n):
            result = x * n
            given.append(result.data_ptr())
            return result

        library = Library([[0, 1, 2, 0], [1]])
        _, errors = self.run_blocks(library, forward, results=wire.KEPT)
        self.assertEqual((errors, len(given), len(set(given[:4]))), ([], 5, 4))
        self.assertEqual([each[1] for each in library.log if each[0] == "done"], [0, 0])
        for slot in (1, 2):  # what a copy costs is tried on slot 0
            self.assertEqual(self.slots.outputs(slot)[0].tolist(), [-1] * 4)

    def test_numbers_and_changed_inputs_are_never_captured(self):
        for changes in (False, True):
            self.plan.arguments[0].twin, self.plan.arguments[2].twin = (3, 1) if changes else (0, 0)
            self.slots = values.Slots(self.plan, self.regions, None)
            library = Library([[0, 1]])
            forward = (lambda x, n: x.mul_(n)) if changes else (lambda x, n: x * n)
            same = {0: 0} if changes else {}
            report, errors = self.run_blocks(library, forward, same=same, ahead=(0, 1))
            self.assertEqual((errors, report.replays), ([], 0))
            self.assertNotIn("launch", library.log)

    def test_a_profiler_sees_the_calls_and_nothing_else(self):
        library = Library([[0, 1]])

        def forward(x, n):
            library.log.append("call")
            return x * n

        self.run_blocks(library, forward, profile=True)
        begin = library.log.index("start")
        self.assertEqual(
            library.log[begin:],
            ["start", "go", "call", "call", "synchronise", "stop", ("done", 2000)],
        )
        self.assertNotIn("call", library.log[:begin])
        library = Library([[0]])
        self.run_blocks(library, lambda x, n: x * n)
        self.assertNotIn("start", library.log)

    def test_kernels_are_noted_from_before_go_until_the_devices_work_is_done(self):
        library = Library([[0], [1]])
        self.run_blocks(library, lambda x, n: x * n, trace=True)
        begin = library.log.index("trace")
        self.assertEqual(
            library.log[begin : begin + 5],
            ["trace", "go", "synchronise", "stop trace", ("done", 1000)],
        )
        self.assertEqual(library.log.count("trace"), 2)
        library = Library([[0]])
        self.run_blocks(library, lambda x, n: x * n)
        self.assertNotIn("trace", library.log)

    def test_an_error_of_the_devices_is_told_and_ends_the_process(self):
        library = Library([[0]], ILLEGAL_ADDRESS)
        loop_report = []

        def ends(status):
            raise SystemExit(status)

        with mock.patch.object(os, "_exit", ends), self.assertRaises(SystemExit) as caught:
            report = wire.Report()
            loop_report.append(report)
            device.wait(library, wire.BlockLoop(report=ctypes.addressof(report)))
        self.assertEqual(caught.exception.code, 3)
        self.assertEqual(loop_report[0].fault, wire.FAULT_DEVICE)
        self.assertIn(b"the device reports CUDA_ERROR_ILLEGAL_ADDRESS (700)", report.message)

    def test_a_result_in_the_slot_is_refused_and_poisoned(self):
        _, errors = self.run_blocks(Library([[1]]), lambda x, n: self.slots.outputs(1)[0].fill_(7))
        self.assertIn("never given", str(errors[0]))
        self.assertTrue(bool((self.slots.outputs(1)[0].view(torch.uint8) == POISON).all()))


class Results(unittest.TestCase):
    def test_what_cannot_travel_through_a_slot(self):
        tensor = torch.empty(2, device="meta")
        self.assertEqual(values.unsupported(tensor), "on meta; only the CPU is supported")
        self.assertEqual(values.unsupported(tensor, "cuda"), "on meta; only cuda is supported")
        self.assertIsNone(values.unsupported(tensor, "meta"))

    def test_a_cost_is_the_mean_of_many_in_the_quickest_round(self):
        clock, done = iter(range(0, 10**9, 500_000)), []
        with mock.patch.object(device.time, "perf_counter_ns", lambda: next(clock)):
            cost = device.cost_ns(lambda: done.append("work"), lambda: done.append("wait"))
        self.assertEqual(cost, 500_000 // 40)
        self.assertEqual((done.count("work"), done.count("wait"), done[-1]), (202, 7, "wait"))

    def test_the_cost_of_long_work_takes_few(self):
        clock, done = iter(range(0, 10**12, 30_000_000)), []
        with mock.patch.object(device.time, "perf_counter_ns", lambda: next(clock)):
            device.cost_ns(lambda: done.append("work"), lambda: None)
        self.assertEqual(len(done), 7)


_MAPS = """
import ctypes, os, sys
sys.path.insert(0, sys.argv[1])
from assay_host import wire
library = wire.Library(wire.library_path())
assert library.synchronize_device() == 100
size = 2 << 20
fd = os.memfd_create("fake-device-memory")
os.ftruncate(fd, size)
os.pwrite(fd, b"judge", 64)
mapping = wire.DeviceMapping(library, fd, size)
assert ctypes.string_at(mapping.address + 64, 5) == b"judge"
ctypes.memmove(mapping.address + 64, b"hosts", 5)
assert os.pread(fd, 5, 64) == b"hosts"
assert library.synchronize_device() == 0
other = wire.DeviceMapping(library, fd, size)
assert other.address != mapping.address
mapping.close()
assert ctypes.string_at(other.address + 64, 5) == b"hosts"
os.fstat(fd)  # still the caller's
try:
    wire.DeviceMapping(library, fd, size + 1)
except OSError as error:
    print(error.strerror)
"""


class Driver(unittest.TestCase):
    @unittest.skipUnless(
        os.path.exists(os.path.join(os.environ.get("ASSAY_FAKE_CUDA", ""), "libcuda.so.1")),
        "the driver without a GPU is not built",
    )
    def test_device_memory_is_mapped_and_unmapped(self):
        ran = subprocess.run(
            [sys.executable, "-B", "-s", "-c", _MAPS, os.path.join(SUPPORT, "python")],
            capture_output=True,
            text=True,
            env={"LD_LIBRARY_PATH": os.environ["ASSAY_FAKE_CUDA"]},
        )
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        self.assertRegex(ran.stdout, r"^device memory cannot be mapped: CUDA_ERROR")

    @unittest.skipIf(cuda_is_there(), "there is a CUDA device")
    def test_a_host_without_a_device_says_so(self):
        judge = Judge(settings={"device": "cuda"})
        self.addCleanup(judge.close)
        with self.assertRaises(Refused) as caught:
            judge.load(SOFTMAX)
        self.assertEqual(caught.exception.number, failure.ENVIRONMENT)
        self.assertIn("cannot use the CUDA device", judge.message())
        # The judge learns it before anything foreign is in the process.
        with self.assertRaises(Refused):
            judge.attach(wire.PLAN, 4096, False)
        self.assertIn("cannot use the CUDA device", judge.message())

    # PyTorch's import and an estimate may go on while another judge measures there.
    @unittest.skipIf(cuda_is_there(), "there is a CUDA device")
    def test_the_device_starts_when_it_is_asked_for_and_not_for_an_estimate(self):
        judge = Judge(settings={"device": "cuda"})
        self.addCleanup(judge.close)
        judge.write("problem/problem.py", SOFTMAX)
        judge.request(wire.ESTIMATE, 0)
        with self.assertRaises(Refused):
            judge.request(wire.START_DEVICE)
        self.assertIn("cannot use the CUDA device", judge.message())

    @unittest.skipIf(cuda_is_there(), "there is a CUDA device")
    def test_device_memory_without_a_device_is_refused(self):
        judge = Judge()
        self.addCleanup(judge.close)
        region = Region(4096)
        for number in (wire.PLAN, wire.INPUTS):
            with self.assertRaises(Refused):
                judge.request(wire.ATTACH, number, 4096, 1, 1, fd=region.fd)
            expected = "no device memory" if number == wire.PLAN else "cannot map region 4: "
            self.assertIn(expected, judge.message())

    def test_a_device_that_nobody_knows_is_refused(self):
        judge = Judge(settings={"device": "abacus"})
        self.addCleanup(judge.close)
        with self.assertRaises(Refused) as caught:
            judge.load(SOFTMAX)
        self.assertEqual(caught.exception.number, failure.ENVIRONMENT)
        self.assertIn("'abacus'", judge.message())


BATCH_NORM = problem("return self.norm(x)", init="self.norm = nn.BatchNorm1d(6)")
NUMBERS = problem(
    "return x * n + a, x.argmax(), n, (x > a).to(torch.bfloat16), x[:0]",
    arguments="self, x, n, a",
    inputs="[torch.randn(3, 5), 4, 0.5]",
)
CHANGES = problem("x.mul_(2)\n        return x")


@unittest.skipUnless(cuda_is_there(), "no CUDA device")
class OnDevice(DeviceHosts):
    """The oracle uses host memory with its module on the device; others use device memory."""

    def assert_agrees(self, judge, slots=(0, 1)):
        for spec in self.oracle.specs:
            if spec.role != wire.OUTPUT:
                continue
            for slot in slots:
                name = spec.name.decode()
                ours = judge.tensor(name, slot).cpu()
                expected = self.oracle.tensor(name, slot)
                self.assertTrue(torch.allclose(ours, expected, atol=1e-5), (name, ours, expected))

    def lay_changed_inputs(self, judge, slots=(0, 1)):
        """As the judge does before a block: forward changes them where outputs lie, once a call."""
        for spec in self.oracle.specs:
            name = spec.name.decode()
            if spec.role == wire.OUTPUT and name.endswith("_after"):
                for slot in slots:
                    judge.tensor(name, slot).copy_(judge.tensor(name.removesuffix("_after"), slot))

    def test_every_role_agrees_with_the_oracle(self):
        for source in (SOFTMAX, LINEAR, BATCH_NORM, NUMBERS, CHANGES):
            self.describe(source)
            for role in ("candidate", "opponent", "reference"):
                own = source.replace("class Model", "class ModelNew")
                judge = self.start(role, own if role == "candidate" else source)
                judge.enter_blocks()
                self.lay_changed_inputs(judge)
                settle_ns = judge.run_block([1, 0] if source == CHANGES else [1, 0, 1])
                self.assertEqual(judge.leave_blocks()[0], 0, judge.message())
                self.assertTrue(0 < settle_ns < 100_000_000, settle_ns)  # others may run beside
                self.assert_agrees(judge)

    def test_a_block_that_is_a_graph_gives_what_its_calls_give(self):
        for source in (SOFTMAX, LINEAR, BATCH_NORM):
            self.describe(source, slots=4)
            for keep in (0, 1):
                judge = self.start("opponent", source)
                judge.control.results = wire.KEPT if keep else wire.INTO_SLOTS
                judge.enter_blocks()
                for order in ([3, 1], [0, 2, 1], [2]):
                    judge.regions[wire.OUTPUTS].fill(POISON)
                    judge.run_block(order, replay=True)
                    self.assertEqual(judge.report.replays, judge.sequence)
                    if not keep:
                        self.assert_agrees(judge, order)
                judge.control.results = wire.INTO_SLOTS
                judge.run_block([1])
                self.assertEqual(judge.report.replays, 0)
                self.assertEqual(judge.leave_blocks()[0], 0, judge.message())
                self.assert_agrees(judge, [1])

    def test_calls_that_cannot_be_captured_run_one_by_one(self):
        for source in (
            problem("if x.sum().item() > 1e30:\n            x = -x\n        return x + 1"),
            CHANGES,
            NUMBERS,
        ):
            self.describe(source)
            judge = self.start("opponent", source)
            judge.enter_blocks()
            for _ in range(2):
                self.lay_changed_inputs(judge)
                judge.run_block([1, 0], replay=True)
                self.assertEqual(judge.report.replays, 0)
            self.assertEqual(judge.leave_blocks()[0], 0, judge.message())
            self.assert_agrees(judge)

    @unittest.skipUnless(
        hasattr(torch, "compile") and shutil.which("cc"), "no torch.compile or no compiler"
    )
    def test_the_compiled_baseline_is_compiled_once_for_all_slots(self):
        strict = "import torch._dynamo\ntorch._dynamo.config.error_on_recompile = True\n"
        self.describe(LINEAR, slots=4)
        judge = self.start("reference", strict + LINEAR, baseline="compiled")
        judge.enter_blocks()
        judge.run_block([3, 0, 1, 2])
        self.assertEqual(judge.leave_blocks()[0], 0, judge.message())
        self.assert_agrees(judge, range(4))

    def test_a_draw_on_the_device_is_the_same_for_the_same_seed_alone(self):
        another = DeviceOracle(settings={"device": "cuda"})
        self.addCleanup(another.close)
        for judge in (another, self.oracle):
            judge.load(LINEAR)
            judge.lay_out(1)
            judge.request(wire.STORE_WEIGHTS, 0)
            judge.draw(3, 2)
        for name in ("x", "layer_weight", "layer_bias"):
            self.assertTrue(torch.equal(another.tensor(name), self.oracle.tensor(name)), name)
        another.draw(4, 2)
        self.assertFalse(torch.equal(another.tensor("x"), self.oracle.tensor("x")))

    def test_inputs_that_the_problem_puts_on_the_device_pass(self):
        source = problem("return x + 1", inputs="[torch.randn(3, device='cuda')]")
        self.describe(source)
        x, out = self.oracle.tensor("x"), self.oracle.tensor("out")
        self.assertTrue(torch.equal(x + 1, out))

    def test_weights_that_the_judge_changes_reach_the_oracle_in_both_precisions(self):
        self.describe(LINEAR)
        self.oracle.evaluate(1, 1)
        weight, bias = self.oracle.tensor("layer_weight"), self.oracle.tensor("layer_bias")
        weight[0, 0] *= 2
        torch.cuda.synchronize()
        self.oracle.request(wire.STORE_WEIGHTS, 2)
        self.oracle.evaluate(1, 1)
        self.oracle.evaluate(1, 0)
        x = self.oracle.tensor("x", 1).double()
        expected = torch.relu(x @ weight.cpu().double().T + bias.cpu().double())
        self.assertLess((self.oracle.oracle("out", 1) - expected).abs().max().item(), 1e-12)
        self.assertLess((self.oracle.tensor("out", 1) - expected).abs().max().item(), 1e-5)

    def test_weights_that_the_judge_changes_reach_hosts_on_the_device(self):
        self.describe(LINEAR)
        for role in ("opponent", "reference"):
            judge = self.start(role, LINEAR)
            judge.enter_blocks()
            judge.run_block([0])
            self.oracle.tensor("layer_weight")[:] *= 2
            judge.tensor("layer_weight").copy_(self.oracle.tensor("layer_weight"))
            torch.cuda.synchronize()
            self.oracle.evaluate(0, 0)
            judge.run_block([0])
            judge.leave_blocks()
            self.assert_agrees(judge, (0,))

    def test_results_on_the_cpu_and_in_the_slot_do_not_count(self):
        self.describe(SOFTMAX)
        head = "import sys, torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n"
        finds_its_slot = (
            "        frame = sys._getframe(1)\n"
            "        while 'outputs' not in frame.f_locals: frame = frame.f_back\n"
            "        slot = frame.f_locals['outputs'][frame.f_locals['slot']][0]\n"
            "        return torch.softmax(x, 1, out=slot)\n"
        )
        for body, part in (
            ("        return torch.softmax(x, 1).cpu()\n", "output out is on cpu"),
            (finds_its_slot, "never given"),
        ):
            judge = self.start("candidate", head + body)
            judge.enter_blocks()
            judge.run_block([1])
            failed, number = judge.leave_blocks()[:2]
            self.assertEqual((failed, number), (1, failure.CANDIDATE_OUTPUT))
            self.assertIn(part, judge.message())
            held = judge.tensor("out", 1).view(-1).view(torch.uint8)
            self.assertTrue(bool((held == POISON).all()))

    def test_an_error_of_the_devices_ends_the_host_and_is_told(self):
        self.describe(SOFTMAX)
        judge = self.start(
            "candidate",
            "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n"
            "        torch.cuda.synchronize = lambda *_: None\n"
            "        x[torch.tensor([1 << 40], device='cuda')]\n"  # a device-side assertion
            "        return torch.softmax(x, 1)\n",
        )
        judge.enter_blocks()
        with self.assertRaises(ConnectionError):
            judge.run_block([1])
        self.assertEqual(os.waitstatus_to_exitcode(judge.status), 3)
        self.assertEqual(judge.report.fault, wire.FAULT_DEVICE)
        self.assertIn("the device reports CUDA_ERROR", judge.message())


if __name__ == "__main__":
    unittest.main()
