"""Tests which references are evaluated by pieces of their batch."""

import unittest

from fake_judge import failure, torch, wire
from judge_case import JudgeCase
from sample_problems import LINEAR, problem

from assay_host import pieces  # noqa: E402

SMALL = 4096  # bytes that may be whole


def found(forward, *leaves):
    """The numbers of the leaves that are cut; None: forward is evaluated whole."""

    def natively(values):
        try:
            result = forward(*values)
        except RuntimeError as error:
            raise failure.Failure(failure.PROBLEM_FORWARD, str(error)) from error
        return list(result) if isinstance(result, tuple) else [result]

    def exact(values):
        return natively(
            [v.double() if torch.is_tensor(v) and v.is_floating_point() else v for v in values]
        )

    result = pieces.find(list(leaves), natively(leaves), natively, exact, SMALL)
    return result and result.sliced


class WhichAreCut(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(7)
        self.x = torch.randn(64, 48)

    def test_rows_that_are_independent(self):
        self.assertEqual(found(torch.relu, self.x), (0,))
        self.assertEqual(found(lambda x: torch.softmax(x, dim=-1), self.x), (0,))
        self.assertEqual(found(lambda x, y: (x + y, x.argmax(-1)), self.x, self.x * 2), (0, 1))
        self.assertEqual(found(lambda x, n: x * n, self.x, 3), (0,))

    def test_what_other_rows_share_is_not_cut(self):
        wide, square = torch.randn(48, 96), torch.randn(64, 64)
        self.assertEqual(found(torch.matmul, self.x, wide), (0,))
        self.assertEqual(found(torch.matmul, square, torch.randn(64, 64)), (0,))
        self.assertEqual(found(lambda x, bias: x + bias, self.x, torch.randn(48)), (0,))

    def test_rows_that_depend_on_others(self):
        for forward in (
            lambda x: x - x.mean(),
            lambda x: x - x.mean(0),
            lambda x: torch.cumsum(x, 0),
            lambda x: x.flip(0),
            lambda x: x + torch.arange(len(x))[:, None],
            lambda x: torch.cat([x[:1] * 2, x[1:]]),
            lambda x: x.view(64, 48) * 2,
            lambda x: x.sum(),
            lambda x: x.T,
        ):
            self.assertIsNone(found(forward, self.x))

    def test_a_part_that_rounding_hides_is_all_that_may_cross_rows(self):
        self.assertIsNone(found(lambda x: x * x.exp() + 1e-4 * x.mean(), self.x))

    def test_small_ones_are_whole(self):
        self.assertIsNone(found(torch.relu, torch.randn(8, 8)))
        self.assertIsNone(found(torch.relu, torch.randn(1, 4096)))

    def test_pieces_cover_all_rows_once(self):
        cut = pieces.Pieces((0,), 10, 4)
        rows = torch.arange(10)
        self.assertEqual([rows[part].tolist() for part in cut.ranges()],
                         [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]])
        self.assertEqual(cut.cut([rows, 5], slice(4, 6))[0].tolist(), [4, 5])


class ThroughTheHost(JudgeCase):
    def truth(self, source, whole_bytes=0):
        self.judge.load(source, whole_bytes=whole_bytes)
        self.judge.lay_out(2)
        self.judge.request(wire.STORE_WEIGHTS, 0)
        self.judge.draw(3, 0, 1)
        self.judge.evaluate(1, 0)
        self.judge.evaluate(1, 1)
        return self.judge.oracle("out", 1).clone()

    def test_the_truth_is_the_same(self):
        changed = problem("x.mul_(2)\n        return x.exp()", "[torch.rand(12, 6)]")
        for source in (LINEAR.replace("3, 5", "12, 5"), changed):
            whole = self.truth(source)
            parts = self.truth(source, whole_bytes=256)
            self.assertTrue(torch.allclose(whole, parts, rtol=1e-14, atol=0), source)

    def test_the_judge_is_told_how_many_there_are(self):
        source = LINEAR.replace("3, 5", "12, 5")
        self.assertEqual(self.judge.load(source)[2], 0)
        self.assertGreater(self.judge.load(source, whole_bytes=256)[2], 1)


if __name__ == "__main__":
    unittest.main()
