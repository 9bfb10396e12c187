"""Tests draws of every kind: values change as promised, everything else stays."""

import types
import unittest
import unittest.mock

from fake_judge import Judge, torch
from assay_host import draws, values

FINITE_KINDS = range(draws.SPECIAL_VALUES)
ALL_KINDS = range(draws.SIGNS)  # that draws.change() makes
DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
# If this PyTorch has them.
FLOAT8 = tuple(
    getattr(torch, name) for name in ("float8_e4m3fn", "float8_e5m2") if hasattr(torch, name)
)


def change(tensor, kind, seed=1):
    return draws.change(tensor, kind, draws.Generators(seed))


class DrawsTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def test_every_kind_keeps_shape_and_dtype_and_all_but_special_values_are_finite(self):
        for dtype in DTYPES + FLOAT8:
            for kind in ALL_KINDS:
                for shape in ((64, 32), (5,), (), (3, 4, 4), (1, 1), (0, 3)):
                    x = (torch.randn(shape) * 3).to(dtype)
                    y = change(x, kind)
                    self.assertEqual((y.shape, y.dtype), (x.shape, x.dtype))
                    if kind in FINITE_KINDS:
                        finite = bool(torch.isfinite(y.double()).all())
                        self.assertTrue(finite, (dtype, kind, shape))

    def test_every_kind_is_deterministic_and_leaves_its_input_alone(self):
        x = torch.randn(64, 32)
        before = x.clone()
        for kind in ALL_KINDS:
            a, b = change(x, kind), change(x, kind)
            self.assertTrue(torch.equal(torch.nan_to_num(a), torch.nan_to_num(b)))
            self.assertTrue(torch.equal(x, before))
            if kind != draws.ORDINARY:
                self.assertFalse(torch.equal(torch.nan_to_num(a), x), kind)

    def test_large_offset_has_mean_1000_and_a_deviation_that_the_dtype_can_hold(self):
        x = torch.randn(100, 100)
        y = change(x, draws.LARGE_OFFSET)
        self.assertAlmostEqual(y.mean().item(), 1000, delta=0.1)
        self.assertAlmostEqual(y.double().std().item(), 0.1, delta=0.01)
        for dtype in (torch.float16, torch.bfloat16):
            y = change(x.to(dtype), draws.LARGE_OFFSET)
            self.assertGreater(len(torch.unique(y.float())), 8)

    def test_large_offset_stays_within_a_dtype_that_ends_before_1000(self):
        facts = types.SimpleNamespace(dtype="float8_e4m3fn", standardised=lambda x: x)
        info = types.SimpleNamespace(max=448.0, eps=0.125)
        with unittest.mock.patch.object(torch, "finfo", lambda _: info):
            self.assertEqual(draws._large_offset(facts, torch.ones(1)).item(), 56 + 4 * 56 * 0.125)

    def test_wide_range_spans_decades(self):
        y = change(torch.randn(100, 100), draws.WIDE_RANGE).abs()
        self.assertGreater(y.max().item() / y.median().item(), 1e2)
        self.assertLess(y.min().item() / y.median().item(), 1e-4)

    def test_tiny_and_huge_scale(self):
        x = torch.randn(100)
        self.assertLess(change(x, draws.TINY_SCALE).abs().max().item(), 1e-10)
        self.assertGreater(
            change(x, draws.TINY_SCALE).abs().min().item(), torch.finfo(torch.float32).tiny
        )
        self.assertGreater(change(x, draws.HUGE_SCALE).abs().max().item(), 1e5)

    def test_signed_zeros_have_both_signs(self):
        y = change(torch.randn(100, 100), draws.SIGNED_ZEROS)
        zeros = y[y == 0]
        negative = torch.signbit(zeros).sum().item()
        self.assertGreater(negative, 1000)
        self.assertGreater(len(zeros) - negative, 1000)
        self.assertGreater((y != 0).sum().item(), 3000)

    def test_ties_small_integers_and_zero_one_have_few_values(self):
        x = torch.randn(100, 100)
        self.assertEqual(sorted(torch.unique(change(x, draws.TIES)).tolist()), [-2, -1, 0, 1, 2])
        integers = torch.unique(change(x, draws.SMALL_INTEGERS))
        self.assertTrue(
            torch.equal(integers, integers.round())
            and integers.abs().max() <= 8
            and len(integers) > 10
        )
        self.assertEqual(torch.unique(change(x, draws.ZERO_ONE)).tolist(), [0, 1])

    def test_a_patch_is_unlike_the_rest_and_never_at_the_start(self):
        ordinary = torch.randn(96, 32)
        ways = set()
        for seed in range(24):
            drawn = draws.change(ordinary, draws.PATCH, draws.Generators(seed))
            rows, columns = ((drawn != ordinary).any(1 - dim).nonzero().flatten() for dim in (0, 1))
            self.assertTrue(0 < rows[0] and rows[-1] - rows[0] < 6)
            if seed % 4 == 1:
                self.assertTrue(0 < columns[0] and len(columns) == 8)
                columns = slice(columns[0], columns[-1] + 1)
            else:
                columns = slice(None)
            for row in drawn[rows][:, columns]:
                if row.abs().max() > 100:
                    ways.add("large")
                elif row.abs().max() < 0.01:
                    ways.add("small")
                elif row.min() > 0.99 * ordinary.max():
                    ways.add("largest")
                elif bool((ordinary[:, columns] == row).all(1).any()):
                    ways.add("repeated")
        self.assertEqual(ways, {"large", "small", "largest", "repeated"})
        few_rows = torch.rand(2, 640)
        drawn = draws.change(few_rows, draws.PATCH, draws.Generators(2))
        self.assertTrue(bool((drawn != few_rows).any(1).all()))
        for kept in (
            torch.softmax(torch.randn(64, 64), -1),
            torch.randn(64, 64).sort(-1).values,
            torch.randn(7),
        ):
            self.assertTrue(torch.equal(draws.change(kept, draws.PATCH, draws.Generators(2)), kept))

    def test_short_integers_come_at_the_ends_of_their_range(self):
        ordinary = torch.randint(-7, 8, (64, 64), dtype=torch.int8)
        drawn = draws.change(ordinary, draws.ZERO_ONE, draws.Generators(5))
        self.assertEqual(set(drawn.unique().tolist()), {-7, 7})
        self.assertGreater((drawn == 7).float().mean().item(), 0.6)
        for value in range(-7, 8):
            self.assertEqual(drawn[ordinary == value].unique().numel(), 1)
        many_zeros = torch.where(torch.rand(64, 64) < 0.5, 0, ordinary)
        drawn = draws.change(many_zeros, draws.ZERO_ONE, draws.Generators(5))
        self.assertTrue(torch.equal(drawn == 0, many_zeros == 0))
        for kept in (
            torch.randint(0, 9, (64,)),  # may be indices
            torch.randint(0, 2, (64,), dtype=torch.uint8),
            torch.arange(64, dtype=torch.int16),
        ):
            self.assertIs(draws.change(kept, draws.ZERO_ONE, draws.Generators(5)), kept)
        self.assertIs(draws.change(ordinary, draws.TIES, draws.Generators(5)), ordinary)

    def test_an_outlier_stands_out_in_every_row(self):
        x = torch.randn(50, 40)
        y = change(x, draws.OUTLIER)
        self.assertEqual((x != y).sum(1).tolist(), [1] * 50)
        self.assertTrue(bool((y.abs().max(1).values > 1000).all()))

    def test_one_outlier_outweighs_all_others(self):
        # A norm of every 32nd row would hardly show otherwise.
        seen = set()
        for seed in range(8):
            y = draws.change(torch.randn(512, 8), draws.OUTLIER, draws.Generators(seed))
            squares = y.double().square().sum(1)
            self.assertGreater(squares.max() / squares.sum(), 0.9)
            seen.add(squares.argmax().item())
        self.assertGreater(len(seen), 4)

    def test_special_values_are_few_and_of_every_sort(self):
        for dtype in DTYPES:
            y = change(torch.randn(64, 64).to(dtype), draws.SPECIAL_VALUES).double()
            self.assertTrue(bool(torch.isnan(y).any()), dtype)
            self.assertTrue(bool((y == float("inf")).any()) and bool((y == float("-inf")).any()))
            tiny = torch.finfo(dtype).tiny
            self.assertTrue(bool(((y.abs() > tiny) & (y.abs() < 2 * tiny)).any()), dtype)
            self.assertLess((~torch.isfinite(y)).any(1).sum().item(), 10)

    def test_sums_of_products_of_special_values_do_not_depend_on_their_order(self):
        """With the dtype's largest value among them, a textbook product failed: infinity plus an
        overflow is NaN, or infinity if the overflow comes last.
        """

        def kinds(x):
            return torch.where(x.isnan(), 2, torch.where(x.isinf(), x.sign(), x * 0).nan_to_num())

        for seed in range(40):
            generators = draws.Generators(seed)
            a = draws.change(torch.randn(3, 45), draws.SPECIAL_VALUES, generators)
            b = draws.change(torch.randn(45, 17), draws.SPECIAL_VALUES, generators)
            truth = kinds(a.double() @ b.double())
            in_turn = torch.zeros(3, 17)
            for k in range(45):
                in_turn = in_turn + a[:, k : k + 1] * b[k : k + 1, :]
            self.assertTrue(torch.equal(kinds(a @ b).double(), truth), seed)
            self.assertTrue(torch.equal(kinds(in_turn).double(), truth), seed)

    def test_a_nudge_changes_last_bits_alone_and_no_mask_label_zero_or_special_value(self):
        for dtype, bits in zip(DTYPES, (47, 18, 10, 7)):
            x = torch.randn(64, 64).to(dtype)
            specials = [0, float("inf"), float("-inf"), torch.finfo(dtype).max]
            x[0, :4] = torch.tensor(specials, dtype=torch.float64).to(dtype)
            mask = (torch.rand(64, 64) < 0.5).to(dtype)
            leaves = [("x", x), ("mask", mask), ("labels", torch.arange(5)), ("scale", 0.5)]
            nudged = draws.nudge_all(leaves, 1, 2.0**-bits)
            self.assertEqual([name for name, _ in nudged], ["x", "mask", "labels", "scale"])
            y = nudged[0][1]
            self.assertEqual((y.shape, y.dtype), (x.shape, x.dtype))
            self.assertTrue(torch.equal(y[0, :3], x[0, :3]))
            self.assertTrue(bool(torch.isfinite(y[0, 3])))
            share = (y.double() - x.double())[1:] / x.double()[1:]
            # Halves are rounded once more.
            self.assertLess(share.abs().max().item(), 1.6 * 2.0**-bits, dtype)
            self.assertGreater((share != 0).double().mean().item(), 0.4, dtype)
            for (_, before), (_, after) in zip(leaves[1:3], nudged[1:3]):
                self.assertTrue(torch.equal(before, after))
            self.assertEqual(nudged[3][1], 0.5)
            self.assertTrue(torch.equal(draws.nudge_all(leaves, 1, 2.0**-bits)[0][1], y))
            self.assertFalse(torch.equal(draws.nudge_all(leaves, 2, 2.0**-bits)[0][1], y))

    def test_pieces_of_a_large_tensor_change_as_the_whole_does(self):
        infinite, symmetric = torch.randn(9, 64), torch.randn(16, 16)
        infinite[::2, ::3], infinite[1, 1] = float("-inf"), float("nan")
        for x in (
            torch.randn(9, 64),
            torch.randn(3, 4, 32).double(),
            torch.rand(500).half(),
            torch.randn(33, 20).t(),
            torch.randn(40, 40).tril(),
            symmetric + symmetric.t(),
            infinite,
        ):
            whole = [change(x, kind) for kind in ALL_KINDS]
            nudged = draws.nudge_all([("x", x)], 1, 2.0**-8)[0][1]
            # A multiple of a vector's length: the elements after the last one are rounded apart.
            with unittest.mock.patch.object(values, "PIECE", 64):
                for kind in ALL_KINDS:
                    self.assertTrue(values.same_bytes(change(x, kind), whole[kind]), kind)
                again = draws.nudge_all([("x", x)], 1, 2.0**-8)[0][1]
            self.assertTrue(values.same_bytes(again, nudged))

    def test_values_that_were_never_negative_stay_so(self):
        for kind in ALL_KINDS:
            y = torch.nan_to_num(change(torch.rand(64, 64), kind))
            self.assertGreaterEqual(y.min().item(), 0, kind)
            self.assertFalse(bool(torch.signbit(y).any()), kind)

    def test_symmetry_and_triangles_and_masks_and_labels_stay(self):
        a = torch.randn(32, 32)
        for kind in ALL_KINDS:
            symmetric = torch.nan_to_num(change(a + a.T, kind))
            self.assertTrue(torch.equal(symmetric, symmetric.T), kind)
            self.assertEqual(
                torch.nan_to_num(change(torch.tril(a), kind)).triu(1).abs().max().item(), 0, kind
            )
            mask = torch.zeros(8, 8).masked_fill(torch.ones(8, 8).triu(1) > 0, float("-inf"))
            self.assertTrue(torch.equal(change(mask, kind), mask), kind)
            labels = torch.where(torch.randn(100) > 0, 1.0, -1.0)
            self.assertTrue(torch.equal(change(labels, kind), labels), kind)
            integers = torch.arange(10)
            self.assertTrue(torch.equal(change(integers, kind), integers), kind)

    def test_the_host_counts_the_tensors_that_changed(self):
        judge = Judge()
        self.addCleanup(judge.close)
        judge.load(
            """
import torch
class Model(torch.nn.Module):
    def forward(self, x, h, i, n): return x + n, h * 2, i
def get_inputs(): return [torch.randn(8, 8), torch.rand(4).half(), torch.arange(3), 2.0]
"""
        )
        judge.lay_out(1)
        self.assertEqual(judge.draw(9, draws.ORDINARY), 0)
        ordinary = judge.tensor("x").clone()
        for kind in range(1, draws.KIND_COUNT):
            # x has both signs already.
            self.assertEqual(judge.draw(9, kind), 1 if kind in (draws.SIGNS, draws.PATCH) else 2)
            self.assertEqual(judge.tensor("i").tolist(), [0, 1, 2])
            self.assertEqual(judge.scalar("n"), 2.0)
            self.assertEqual(torch.equal(judge.tensor("x"), ordinary), kind == draws.SIGNS)
            judge.evaluate(0, 0)
            self.assertTrue(
                torch.equal(
                    torch.nan_to_num(judge.tensor("out")), torch.nan_to_num(judge.tensor("x") + 2)
                )
            )
        judge.draw(9, draws.ORDINARY)
        self.assertTrue(torch.equal(judge.tensor("x"), ordinary))


if __name__ == "__main__":
    unittest.main()
