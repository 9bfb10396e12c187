"""Tests random signs, and the judge's own values where get_inputs() repeats itself."""

import types
import unittest
from unittest import mock

from fake_judge import torch
from assay_host import describe, draws, failure, input_draws, mends, own_values, problem, values
from assay_host import wire
from assay_host.failure import Failure

PLACE = types.SimpleNamespace(draw=lambda call: call(), drawn=lambda value: value)


def inputs_of(get_inputs, forward):
    """Returns the InputDraws of a problem, and what learn() says."""

    def call(seed=7):
        problem.seed_everything(seed)
        return [(f"x{number}", value) for number, value in enumerate(get_inputs())]

    def truth_of(leaves):
        try:
            doubles = [
                value.double() if getattr(value, "is_floating_point", bool)() else value
                for _, value in leaves
            ]
            yield [forward(*doubles)]
        except Exception as error:
            raise Failure(failure.PROBLEM_FORWARD, str(error)) from error

    signature = describe.Signature()
    signature.add_inputs(call())
    made = input_draws.InputDraws(call, PLACE, 7, signature.of_role(wire.INPUT))
    return made, made.learn(truth_of)


def signed(get_inputs, forward=lambda x, *_: x, seed=1):
    """Returns an ordinary draw, the same with random signs, how many tensors changed, and bits of
    those that keep theirs.
    """
    made, _ = inputs_of(get_inputs, forward)
    ordinary, _ = made.drawn(seed, draws.ORDINARY)
    leaves, changed = made.drawn(seed, draws.SIGNS)
    values = [[value for _, value in drawn] for drawn in (ordinary, leaves)]
    return (*values, changed, made.kept_signs())


class FixedInputsTest(unittest.TestCase):
    def test_masks_and_lengths_that_no_draw_changes_are_named(self):
        lengths, mask = torch.arange(2, 10), torch.tril(torch.ones(8, 8)).bool()
        made, _ = inputs_of(
            lambda: [torch.randn(8, 8), mask, lengths, torch.randperm(64), 3, torch.tensor(2)],
            lambda x, *_: x,
        )
        self.assertEqual(
            made.words(), "x1, x2 are the same in every draw: candidates may rely on them"
        )

    def test_numbers_that_unusual_draws_change_are_not(self):
        levels = torch.arange(16, dtype=torch.int8)
        made, _ = inputs_of(
            lambda: [torch.randn(4, 4), torch.linspace(0, 1, 9), levels], lambda x, *_: x
        )
        self.assertEqual(made.words(), "")
        zeros_and_ones = torch.tensor([0.0, 1.0, 1.0, 0.0])
        made, _ = inputs_of(lambda: [torch.randn(4), zeros_and_ones], lambda x, *_: x)
        self.assertEqual(made.words(), "x1 is the same in every draw: candidates may rely on it")


class ExpandedInputsTest(unittest.TestCase):
    # A candidate that read one row of b was wrong: the outliers of its rows differed.
    def test_what_an_input_repeats_it_repeats_in_every_draw(self):
        made, _ = inputs_of(
            lambda: [torch.rand(8, 16), torch.rand(1, 16).expand(8, 16)], lambda x, y: x + y
        )
        for kind in range(draws.KIND_COUNT):
            (_, whole), (_, repeated) = made.drawn(3, kind)[0]
            self.assertEqual(whole.shape, repeated.shape)
            self.assertTrue(
                values.same_bytes(repeated.contiguous(), repeated[:1].repeat(8, 1)), kind
            )

    def test_the_judges_own_values_repeat_too(self):
        fixed = torch.rand(1, 16)
        made, said = inputs_of(lambda: [fixed.expand(8, 16)], lambda x: x)
        self.assertEqual(said, (True, True))
        ((_, own),) = made.drawn(3, draws.ORDINARY)[0]
        self.assertFalse(torch.equal(own[:1], fixed))
        self.assertTrue(torch.equal(own, own[:1].expand(8, 16)))


class SignsTest(unittest.TestCase):
    def test_values_of_one_sign_get_random_signs_and_keep_their_magnitudes(self):
        for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
            for sign in (1, -1):
                before, after, changed, kept = signed(
                    lambda: [(sign * torch.rand(64, 64)).to(dtype)]
                )
                self.assertEqual((changed, kept), (1, 0))
                self.assertEqual(after[0].dtype, dtype)
                self.assertTrue(torch.equal(before[0].abs(), after[0].abs()))
                share = (before[0] != after[0]).double().mean().item()
                self.assertAlmostEqual(share, 0.5, delta=0.2 if dtype == torch.bfloat16 else 0.05)

    def test_other_seeds_give_other_signs(self):
        values = [torch.rand(64)]
        first = signed(lambda: [values[0].clone(), torch.rand(3)], seed=1)[1][0]
        second = signed(lambda: [values[0].clone(), torch.rand(3)], seed=2)[1][0]
        self.assertFalse(torch.equal(first, second))

    def test_values_that_leave_out_an_interval_around_zero_get_random_signs(self):
        def get_inputs():
            x = 1 + torch.rand(64)
            x[:32] *= -1
            return [x]

        before, after, changed, _ = signed(get_inputs)
        self.assertEqual(changed, 1)
        self.assertFalse(torch.equal(before[0], after[0]))

    def test_what_says_more_than_a_distribution_stays(self):
        def triangle():
            return torch.softmax(torch.randn(8, 8), 1)

        for get_inputs in (
            lambda: [torch.randn(64)],
            lambda: [(torch.rand(64) < 0.5).float()],
            lambda: [torch.ones(8, 8)],
            lambda: [torch.randint(0, 5, (64,))],
            lambda: [torch.rand(64) < 0.5],
            lambda: [triangle()],
            lambda: [triangle().t().contiguous()],
            lambda: [torch.rand(64).sort().values],
            lambda: [torch.rand(0, 4)],
        ):
            before, after, changed, kept = signed(get_inputs)
            self.assertEqual((changed, kept), (0, 0))
            self.assertTrue(torch.equal(before[0], after[0]))

    def test_zeros_infinities_ties_and_symmetry_stay(self):
        def get_inputs():
            x = torch.rand(32, 32)
            x = x + x.t()
            x[0, 0], x[1, 1] = 0, float("inf")
            return [x]

        _, (x,), changed, _ = signed(get_inputs, lambda x: x.clamp(-9, 9))
        self.assertEqual(changed, 1)
        self.assertTrue(torch.equal(x, x.t()))
        self.assertFalse(bool(torch.signbit(x[0, 0])))
        self.assertEqual(x[1, 1].item(), float("inf"))

    def test_inputs_that_the_reference_needs_positive_keep_their_signs(self):
        for forward in (
            torch.sqrt,
            torch.log,
            lambda x: x**0.3,
            lambda p: p * torch.log(p),
            lambda x: torch.linalg.cholesky(torch.diag(x)),
        ):
            before, after, changed, kept = signed(lambda: [torch.rand(64) + 0.1], forward)
            self.assertEqual((changed, kept), (0, 1))
            self.assertTrue(torch.equal(before[0], after[0]))

    def test_one_input_that_must_be_positive_does_not_keep_the_others_so(self):
        before, after, changed, kept = signed(
            lambda: [torch.rand(64), torch.rand(64) + 0.1, torch.rand(64)],
            lambda x, v, y: x / v.sqrt() + y,
        )
        self.assertEqual((changed, kept), (2, 0b10))
        self.assertTrue(torch.equal(before[1], after[1]))
        for number in (0, 2):
            self.assertLess(after[number].min().item(), 0)

    def test_pieces_of_a_large_input_get_the_signs_of_the_whole(self):
        def gap():
            x = 1 + torch.rand(20, 64)
            x[::2] *= -1
            x[3, 3] = float("inf")
            return [x]

        for get_inputs in (lambda: [torch.rand(20, 64).half()], gap, lambda: [torch.randn(999)]):
            (_, (whole,), *said) = signed(get_inputs)
            with mock.patch.object(values, "PIECE", 64):
                (_, (after,), *again) = signed(get_inputs)
            self.assertEqual(said, again)
            self.assertTrue(values.same_bytes(after, whole))

    def test_infinities_by_design_do_not_keep_signs(self):
        mask = torch.zeros(8, 8).masked_fill(torch.ones(8, 8).triu(1) > 0, float("-inf"))
        _, after, changed, kept = signed(lambda: [torch.rand(8, 8)], lambda x: x.clamp(0) + mask)
        self.assertEqual((changed, kept), (1, 0))
        self.assertLess(after[0].min().item(), 0)


class SharingTest(unittest.TestCase):
    """A candidate that read one of two inputs that are views of the same elements was wrong: each
    draw changed each input alone.
    """

    KINDS = [*range(draws.KIND_COUNT), *mends.KINDS]

    def test_inputs_that_share_elements_agree_in_every_draw(self):
        def get_inputs():
            a, buffer = torch.rand(12, 12), torch.rand(3, 40)
            return [a, a.t(), a, a[2:5, ::2], buffer[0], buffer[1:], buffer, a[:1].expand(4, 12)]

        for forward in (lambda a, *_: a, lambda a, *_: a.sqrt()):
            made, _ = inputs_of(get_inputs, forward)
            for kind in self.KINDS:
                leaves, _ = made.drawn(5, kind)
                for drawn in (leaves, draws.nudge_all(leaves, 3, 1e-3)):
                    a, turned, same, part, first, rest, whole, wide = (x for _, x in drawn)
                    for one, other in (
                        (turned, a.t()), (same, a), (part, a[2:5, ::2]), (first, whole[0]),
                        (rest, whole[1:]), (wide, a[:1].expand(4, 12)),
                    ):  # fmt: skip
                        self.assertTrue(values.same_bytes(one, other.contiguous()), kind)

    def test_the_judges_own_values_are_shared_too(self):
        a = torch.randn(8, 8)
        made, said = inputs_of(lambda: [a.t(), a], lambda x, _: x)
        self.assertEqual(said, (True, True))
        (_, turned), (_, own) = made.drawn(3, draws.ORDINARY)[0]
        self.assertFalse(torch.equal(own, a))
        self.assertTrue(torch.equal(turned, own.t()))

    def test_parts_of_one_buffer_that_share_nothing_change_as_they_would_alone(self):
        torch.manual_seed(2)
        parts = torch.randn(3, 8, 8).unbind()
        alone = [("x", part.clone()) for part in parts]
        for kind in (draws.OUTLIER, draws.TIES, draws.SPECIAL_VALUES):
            changed, _ = draws.change_all([("x", part) for part in parts], kind, 1)
            expected, _ = draws.change_all(alone, kind, 1)
            for (_, one), (_, other) in zip(changed, expected):
                self.assertTrue(values.same_bytes(one, other))


class OwnValuesTest(unittest.TestCase):
    def drawn(self, get_inputs, count=2):
        """Returns what learn() says, and the first input of some draws."""
        made, said = inputs_of(get_inputs, lambda x, *_: x)
        return said, [made.drawn(seed, draws.ORDINARY)[0][0][1] for seed in range(count)]

    def test_values_that_change_with_the_seed_are_left_alone(self):
        said, (first, _) = self.drawn(lambda: [torch.rand(64)])
        self.assertEqual(said, (False, False))
        torch.manual_seed(0)
        self.assertTrue(torch.equal(first, torch.rand(64)))
        self.assertEqual(self.drawn(lambda: [torch.rand(()).item()], 1)[0], (False, False))

    def test_a_get_inputs_that_seeds_itself_or_gives_a_constant_gets_the_judges_values(self):
        def seeded():
            torch.manual_seed(3)
            return [torch.rand(64, 4) - 0.25, 0.5]

        constant = torch.randn(64, 4)
        for get_inputs in (seeded, lambda: [constant, torch.arange(5)]):
            given = get_inputs()[0]
            said, (first, second) = self.drawn(get_inputs)
            self.assertEqual(said, (True, True))
            self.assertEqual((first.shape, first.dtype), (given.shape, given.dtype))
            for one in (first, second):
                self.assertFalse(torch.equal(one, given))
                self.assertGreaterEqual(one.min().item(), given.min().item())
                self.assertLessEqual(one.max().item(), given.max().item())
            self.assertFalse(torch.equal(first, second))
            self.assertNotEqual(first.sum().item(), second.sum().item())

    def test_own_values_are_the_same_under_the_same_seed(self):
        constant = torch.randn(64)
        made, _ = inputs_of(lambda: [constant], lambda x: x)
        a, b = (made.drawn(5, draws.ORDINARY)[0][0][1] for _ in range(2))
        self.assertTrue(torch.equal(a, b))

    def test_structure_stays(self):
        symmetric = torch.randn(8, 8)
        symmetric = symmetric @ symmetric.t()
        _, (own, _) = self.drawn(lambda: [symmetric])
        self.assertFalse(torch.equal(own, symmetric))
        self.assertTrue(torch.equal(own, own.t()))
        for before, after in zip(*(torch.linalg.eigvalsh(x) for x in (symmetric, own))):
            self.assertAlmostEqual(before.item(), after.item(), places=3)
        for dim in (0, 1):
            shares = torch.softmax(torch.randn(16, 16), dim)
            _, (own, _) = self.drawn(lambda: [shares])
            self.assertFalse(torch.equal(own, shares))
            self.assertTrue(bool(((own.sum(dim) - 1).abs() < 1e-5).all()))
        whole = torch.randint(0, 100, (64,)).float()
        _, (own, _) = self.drawn(lambda: [whole])
        self.assertTrue(torch.equal(own, own.round()))
        triangle = torch.randn(16, 16).tril()
        _, (own, _) = self.drawn(lambda: [triangle])
        self.assertTrue(torch.equal(own.triu(1), torch.zeros(16, 16)))

    def test_what_no_judge_may_change_is_said_and_stays(self):
        for given in (torch.ones(64), torch.arange(64.0), torch.randint(0, 9, (64,))):
            said, (own, _) = self.drawn(lambda: [given])
            self.assertEqual(said, (True, False))
            self.assertTrue(torch.equal(own, given))

    def test_a_difference_in_any_leaf_counts(self):
        a = [("x", torch.zeros(9000)), ("n", 3), ("s", float("nan"))]
        self.assertTrue(own_values.same(own_values.digest(a), own_values.digest(a)))
        for name, value in (("n", 4), ("x", torch.eye(9000)[7])):
            b = [(key, value if key == name else old) for key, old in a]
            self.assertFalse(own_values.same(own_values.digest(a), own_values.digest(b)))


if __name__ == "__main__":
    unittest.main()
