"""Tests what a forward leaves in its module: what the reference tells, and what a candidate has."""

import json
import os
import unittest

from fake_judge import torch, wire
from judge_case import JudgeCase
from sample_problems import problem
from assay_host import module_state

torch.set_grad_enabled(False)

COUNTS = problem(
    "self.calls += 1; self.mean.mul_(0.5).add_(x.mean()); return x * 2",
    init="self.register_buffer('calls', torch.tensor(0)); "
    "self.register_buffer('mean', torch.zeros(1))",
)


class Module(torch.nn.Module):
    def __init__(self, **buffers):
        super().__init__()
        for name, tensor in buffers.items():
            self.register_buffer(name, tensor)


class ModuleStateTest(JudgeCase):
    def setUp(self):
        super().setUp()
        self.memory = os.memfd_create("assay-test-state")
        os.ftruncate(self.memory, 1 << 20)

    def tearDown(self):
        os.close(self.memory)
        super().tearDown()

    def told(self, source):
        """Returns what the reference tells of one call on slot 0, and how many did not fit."""
        self.judge.load(source)
        self.judge.lay_out(3)
        self.judge.request(wire.STORE_WEIGHTS, 0)
        self.judge.draw(3, 0, 0)
        self.judge.evaluate(0, 0)
        size, left_out = self.judge.request(wire.STATE, 0, fd=self.memory)[:2]
        return json.loads(os.pread(self.memory, size, 0)), left_out

    def tensor(self, one, dtype, size_bytes):
        data = os.pread(self.memory, size_bytes, one["offset"])
        return torch.frombuffer(bytearray(data), dtype=dtype)

    def test_one_call_from_the_constructed_state(self):
        (calls, mean), left_out = self.told(COUNTS)
        self.assertEqual((calls["name"], calls["shape"], left_out), ("calls", [], 0))
        self.assertEqual(self.tensor(calls, torch.int64, 8).item(), 1)
        x = self.judge.tensor("x", 0)
        self.assertAlmostEqual(self.tensor(mean, torch.float32, 4).item(), x.mean().item(), 6)

    def test_a_forward_that_changes_nothing_tells_nothing(self):
        self.assertEqual(self.told(problem("return x * 2")), ([], 0))

    def test_a_candidate_tells_what_it_has(self):
        described, _ = self.told(COUNTS)
        size = len(json.dumps(described))
        other = torch.tensor([7.0])
        self.assertEqual(module_state.tell(Module(mean=other), size, self.memory), 2)
        self.assertEqual(self.tensor(described[1], torch.float32, 4).item(), 7)
        self.assertEqual(module_state.tell(Module(mean=torch.zeros(2)), size, self.memory), 0)
        self.assertEqual(module_state.tell(lambda x: x, size, self.memory), 0)


if __name__ == "__main__":
    unittest.main()
