"""Inputs that forward changes: described, evaluated on copies, changed in the slot of each call."""

import unittest
from unittest import mock

from fake_judge import torch, values, wire
from judge_case import JudgeCase
from assay_host import failure, inplace
from sample_problems import problem

CACHE = problem(
    "cache[:, pos] = k; return k.sum(-1)",
    inputs="[torch.randn(2, 8, 4), torch.randn(2, 4), 3]",
    arguments="self, cache, k, pos",
)
STEP = "[torch.randn(5), torch.randn(5)]"


class InPlace(JudgeCase):
    def prepare(self, source, slots=3):
        """Loads, draws and evaluates slot by slot; returns the expected outputs of each."""
        judge = self.judge
        done = judge.load(source)
        self.assertEqual(done[1], 1 | 2)  # it changes inputs, and runs in float64
        judge.lay_out(slots)
        judge.request(wire.STORE_WEIGHTS, 0)
        expected = []
        for slot in range(slots):
            judge.draw(50 + slot, 0, slot)
            judge.evaluate(slot, 0)
            judge.evaluate(slot, 1)
            names = [spec.name.decode() for spec in judge.specs if spec.role == wire.OUTPUT]
            expected.append({name: judge.tensor(name, slot).clone() for name in names})
            for name in names:
                self.assertTrue(
                    torch.allclose(judge.oracle(name, slot).float(), expected[slot][name])
                )
                judge.tensor(name, slot).fill_(float("nan"))
        return expected

    def run_blocks(self, order, results=wire.INTO_SLOTS):
        """Lays the changed inputs in their slots, and runs a block, as a judge does."""
        judge = self.judge
        judge.control.results = results
        judge.enter_blocks()
        for spec in judge.specs:
            if spec.role == wire.OUTPUT and spec.twin:
                source = judge.specs[spec.twin - 1].name.decode()
                for slot in range(judge.plan.slot_count):
                    judge.tensor(spec.name.decode(), slot).copy_(judge.tensor(source, slot))
        judge.run_block(order)
        judge.control.results = wire.INTO_SLOTS
        return judge.leave_blocks()[0]

    def test_a_cache_update_changes_its_slot_alone(self):
        expected = self.prepare(CACHE)
        self.assertEqual(
            self.judge.signature()[-2:],
            ["output out float32[2]", "output cache_after float32[2, 8, 4]"],
        )
        cache, after = self.judge.spec("cache"), self.judge.spec("cache_after")
        self.assertEqual((cache.twin, after.twin, after.used_bytes), (5, 1, 2 * 4 * 4))
        before = [self.judge.tensor("cache", slot).clone() for slot in range(3)]
        self.assertEqual(self.run_blocks([2, 0]), 0)
        for slot in (0, 2):
            for name, tensor in expected[slot].items():
                self.assertTrue(torch.equal(self.judge.tensor(name, slot), tensor), name)
        self.assertTrue(torch.equal(self.judge.tensor("cache_after", 1), before[1]))
        for slot in range(3):
            self.assertTrue(torch.equal(self.judge.tensor("cache", slot), before[slot]))

    def test_an_input_that_is_returned_is_one_output(self):
        for body, results in (("return p.sub_(0.1 * g)", 1), ("p.sub_(0.1 * g)", 0)):
            expected = self.prepare(problem(body, inputs=STEP, arguments="self, p, g"))
            self.assertEqual(self.judge.signature()[2:], ["output p_after float32[5]"])
            for way in (wire.INTO_SLOTS, wire.LEFT):
                self.assertEqual(self.run_blocks([1, 2], way), 0)
                for slot in (1, 2):
                    self.assertTrue(
                        torch.equal(
                            self.judge.tensor("p_after", slot), expected[slot]["p_after"]
                        )
                    )

    def test_a_view_of_a_changed_input_is_a_result_of_its_own(self):
        body = "p.mul_(2); return p[1:], p"
        expected = self.prepare(problem(body, inputs=STEP, arguments="self, p, g"))
        self.assertEqual(
            self.judge.signature()[2:], ["output out float32[4]", "output p_after float32[5]"]
        )
        self.assertEqual(self.run_blocks([0]), 0)
        self.assertTrue(torch.equal(self.judge.tensor("out"), expected[0]["out"]))

    def test_a_change_that_leaves_the_values_as_they_are_counts(self):
        self.prepare(problem("return x.clamp_(-100, 100) + 1"))
        self.assertEqual(self.judge.spec("x_after").used_bytes, 0)

    def test_changes_that_no_slot_can_show_are_refused(self):
        for body, words in (
            ("x.data = x * 2; return x.sum()", "x.copy_(...)"),
            ("return x.unsqueeze_(0).sum()", "the shape or the type of its input x"),
        ):
            self.refused(problem(body), failure.PROBLEM_FORWARD, words)

    def test_changed_bytes_are_those_of_elements_that_differ(self):
        before = torch.tensor([[1.0, 2.0], [0.0, float("nan")]])
        after = before.clone()
        after[0, 1], after[1, 0] = 3, -0.0
        self.assertEqual(inplace.changed_bytes(before, after), 8)
        self.assertEqual(inplace.changed_bytes(torch.zeros(0, 3), torch.zeros(0, 3)), 0)
        flag = torch.tensor([True, False])
        self.assertEqual(inplace.changed_bytes(flag, ~flag), 2)

    def test_pieces_of_large_tensors_are_compared_as_the_whole(self):
        a = torch.randn(7, 9)
        a[0, :3] = torch.tensor([float("nan"), float("inf"), -0.0])
        near, far, small = a.clone(), a.clone(), a.clone()
        near[6] *= 1 + 2e-6
        far[6, 8] = 1e-3
        small[6, 8] = float("nan")
        flags = torch.rand(5, 5) < 0.5
        pairs = [(a, b) for b in (a.clone(), near, far, small, -a, a.double(), a.flatten())]
        pairs += [(near, a), (a.t(), a.t().contiguous()), (a * 0, a.abs() * 0), (a[:0], a[:0])]
        pairs += [(flags, flags.clone()), (flags, ~flags), (flags.long(), flags.long() * 2)]

        def found():
            return [
                (
                    values.same_bytes(a, b),
                    values.same_but_for_rounding(a, b),
                    a.dtype == b.dtype and a.shape == b.shape and inplace.changed_bytes(a, b),
                    values.not_finite([a, b]),
                )
                for a, b in pairs
            ]

        whole = found()
        self.assertEqual(whole[:4], [(True, True, 0, 4), (False, True, 36, 4),
                                     (False, False, 4, 4), (False, False, 4, 5)])
        for elements in (1, 4, 62):
            with mock.patch.object(values, "PIECE", elements):
                self.assertEqual(found(), whole)


if __name__ == "__main__":
    unittest.main()
