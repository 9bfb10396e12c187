"""Inputs that are views: their memory in slots, and what forward sees."""

import unittest

from fake_judge import Judge, torch, wire
from assay_host import layout
from sample_problems import problem

BASE = torch.arange(2 * 3 * 4 * 5.0).view(2, 3, 4, 5)


class Layouts(unittest.TestCase):
    def test_a_view_gets_the_shape_of_its_memory(self):
        for view, memory in (
            (BASE.to(memory_format=torch.channels_last), (2, 4, 5, 3)),
            (BASE[0, 0].t(), (4, 5)),
            (BASE[0, 0][:, :3], (4, 5)),
            (BASE.view(6, 20)[:, ::2], (6, 10, 2)),
            (BASE.view(6, 20)[:, 2::4].t(), (6, 5, 4)),
            (BASE[:1].permute(3, 0, 1, 2), (3, 4, 5)),
        ):
            found = layout.of(view)
            self.assertEqual(found.memory, memory)
            copied = layout.copy(view, "cpu", torch.float64)
            self.assertEqual((copied.stride(), copied.dtype), (view.stride(), torch.float64))
            self.assertTrue(torch.equal(copied, view.double()))

    def test_what_is_no_tensor_of_memory_is_contiguous(self):
        for view in (
            BASE,
            BASE[0, 0, :1].expand(4, 5),
            BASE.flatten().as_strided((3, 3), (2, 1)),
            BASE.flatten().as_strided((4, 4), (5, 2)),
            BASE.view(6, 20)[:, 0],
            torch.zeros(0, 3).t(),
        ):
            self.assertIsNone(layout.of(view))
            self.assertTrue(layout.copy(view, "cpu").is_contiguous())


class InSlots(unittest.TestCase):
    def test_forward_gets_views_of_slots_and_the_judge_their_memory(self):
        judge = Judge()
        self.addCleanup(judge.close)
        judge.load(
            problem(
                "return x + torch.tensor(x.stride()).sum(), e * 1, p.add_(1)",
                inputs="[torch.randn(6, 4).t()[:, ::2], torch.randn(1, 3).expand(2, 3), "
                "torch.zeros(2, 3).t()]",
                arguments="self, x, e, p",
            )
        )
        self.assertEqual(
            judge.signature(),
            ["input x float32[3, 8]", "input e float32[2, 3]", "input p float32[3, 2]"]
            + ["output out float32[4, 3]", "output out1 float32[2, 3]"]
            + ["output p_after float32[3, 2]"],
        )
        self.assertEqual([judge.spec(name).used_bytes for name in "xe"], [48, 0])
        for words in (
            "input x is [4, 3] with strides [1, 8]: native candidates get its memory, [3, 8]",
            "input e is [2, 3] with strides [0, 1]: both sides get it contiguous",
            "input p is [3, 2] with strides [1, 3]: both sides get it contiguous, as forward",
        ):
            self.assertIn(words, judge.message())
        judge.lay_out(1)
        judge.draw(1)
        judge.evaluate()
        x = judge.tensor("x")[:, :4].t()
        self.assertTrue(torch.equal(judge.tensor("out"), x + 9))
        judge.tensor("out").zero_()
        judge.tensor("p_after").zero_()
        judge.control.results = wire.INTO_SLOTS
        judge.enter_blocks()
        judge.run_block([0])
        self.assertEqual(judge.leave_blocks()[0], 0)
        self.assertTrue(torch.equal(judge.tensor("out"), x + 9))


if __name__ == "__main__":
    unittest.main()
