"""Tests mutants of a reference: their results, and the problems that have them; and draws beyond
gate 1's.
"""

import json
import os
import unittest

from fake_judge import torch, wire
from judge_case import JudgeCase
from sample_problems import LINEAR, SOFTMAX, problem
from assay_host import mends, mutant_operators

torch.set_grad_enabled(False)


def mutated(forward, words):
    """Returns forward's result under the mutant of this name."""
    _, sites, _ = mutant_operators.sites(forward, "")
    for site in sites:
        if site.words == words:
            return mutant_operators.run(forward, site.index, site.mutation)
    raise AssertionError(f"no {words} in {[site.words for site in sites]}")


class OperatorsTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.x, self.y = torch.randn(8, 32), torch.randn(8, 32)

    def check(self, forward, words, expected):
        self.assertTrue(torch.allclose(mutated(forward, words), expected), words)

    def test_a_sum_loses_a_term_and_a_product_a_factor(self):
        x, y = self.x, self.y
        self.check(lambda: x + y, "add drops its second term", x)
        self.check(lambda: x + y, "add drops its first term", y)
        self.check(lambda: x - y, "sub drops its second term", x)
        self.check(lambda: x * 3, "mul drops its second factor", x)

    def test_only_one_call_of_several_changes(self):
        x, y = self.x, self.y
        self.check(lambda: (x + y) + 1, "add 1 drops its second term", x + 1)
        self.check(lambda: (x + y) + 1, "add 2 drops its second term", x + y)

    def test_an_operator_in_place_is_mutated_in_place(self):
        def forward():
            result = self.x.clone()
            result.add_(self.y)
            return result

        self.check(forward, "add drops its second term", self.x)
        self.assertTrue(torch.equal(forward(), self.x + self.y))

    def test_reductions_leave_out_the_last_sixteenth(self):
        x = self.x
        words = "leaves out the last of what it reduces"
        self.check(lambda: x.sum(dim=1), f"sum {words}", x[:, :30].sum(dim=1))
        self.check(lambda: x.sum(), f"sum {words}", x.flatten()[:240].sum())
        self.check(lambda: x.mean(dim=0, keepdim=True), f"mean {words}", x[:7].mean(0, True))
        self.check(lambda: x.amax(dim=-1), f"amax {words}", x[:, :30].amax(-1))
        self.check(lambda: x.max(dim=1)[0], f"max {words}", x[:, :30].max(1)[0])

    def test_products_leave_out_the_last_of_the_inner_dimension(self):
        x, y = self.x, self.y
        words = "leaves out the last of the sum"
        self.check(lambda: x @ y.t(), f"mm {words}", x[:, :30] @ y[:, :30].t())
        bias = torch.randn(8)
        linear = torch.nn.functional.linear
        self.check(lambda: linear(x, y, bias), f"addmm {words}", x[:, :30] @ y[:, :30].t() + bias)
        self.check(lambda: linear(x, y, bias), "addmm drops the bias", x @ y.t())

    def test_convolutions_and_softmax_leave_out_the_last_of_their_sums(self):
        words = "leaves out the last of the sum"
        image, weight = torch.randn(2, 3, 8, 8), torch.randn(4, 3, 3, 3)
        less = weight.clone()
        less[:, 2, 2, 2] = 0  # one of 27 taps
        conv = torch.nn.functional.conv2d
        self.check(lambda: conv(image, weight), f"convolution {words}", conv(image, less))
        result = mutated(lambda: torch.softmax(self.x, 1), f"softmax {words}")
        exponentials = self.x.exp()
        self.assertTrue(
            torch.allclose(result, exponentials / exponentials[:, :30].sum(1, True), atol=1e-6)
        )

    def test_branches_get_the_wrong_sign(self):
        x, y = self.x, self.y
        relu = torch.relu(x)
        self.check(lambda: torch.relu(x), "relu flips the sign where values are positive", -relu)
        self.check(lambda: x.abs(), "abs returns negative values as they are", x)
        self.check(lambda: x.clamp(-1, 1), "clamp cuts nothing", x)
        self.check(
            lambda: torch.where(x > 0, x, y),
            "where flips the sign where the condition holds",
            torch.where(x > 0, -x, y),
        )

    def test_normalisations_keep_their_mean(self):
        x = self.x + 3
        functional = torch.nn.functional
        words = "does not take away the mean"
        deviation = (x.var(1, unbiased=False, keepdim=True) + 1e-5).sqrt()
        weight = torch.rand(32)
        self.check(
            lambda: functional.layer_norm(x, (32,), weight),
            f"native_layer_norm {words}",
            x / deviation * weight,
        )
        grouped = x.view(2, 4, 32)
        deviation = (grouped.reshape(2, 2, 64).var(2, unbiased=False) + 1e-5).sqrt()
        expected = grouped / deviation.repeat_interleave(2, 1).unsqueeze(-1)
        self.check(
            lambda: functional.group_norm(grouped, 2), f"native_group_norm {words}", expected
        )

    def test_long_loops_get_a_bounded_number(self):
        def forward():
            total = torch.zeros(3)
            for _ in range(200):
                total = total + 1
            return total

        operators, sites, left_out = mutant_operators.sites(forward, "")
        self.assertLessEqual(len(operators), 4)
        self.assertEqual(len(operators) + left_out, 200)
        self.assertIn("add 200 drops its second term", [site.words for site in sites])

    def test_what_computes_is_an_operator_with_its_line(self):
        def forward():
            moved = self.x.t().reshape(-1)[:256].view(8, 32).contiguous().clone()
            return torch.tanh(moved), torch.cat([self.x, self.y]).float()

        operators, sites, _ = mutant_operators.sites(forward, __file__)
        line = forward.__code__.co_firstlineno + 2
        found = [(one.name, one.line) for one in operators]
        self.assertEqual(found, [("tanh", line), ("cat", line)])
        words = f"tanh in line {line} is left out"
        self.assertEqual([(site.words, site.operator) for site in sites][0], (words, 0))

    def test_an_operator_that_is_left_out_gives_its_argument_or_zeros(self):
        x = self.x
        self.check(lambda: torch.tanh(x), "tanh is left out", x)
        self.check(lambda: x.relu(), "relu is left out", x)
        self.check(lambda: x.exp().sum(1), "sum is left out", torch.zeros(8))
        self.check(lambda: torch.max(x, 1)[0], "max is left out", torch.zeros(8))


class MendsTest(unittest.TestCase):
    def test_each_changes_its_kind_of_tensor_and_keeps_shape_and_dtype(self):
        torch.manual_seed(0)
        leaves = [
            ("x", torch.randn(4, 6)),
            ("h", torch.randn(5).to(torch.bfloat16)),
            ("i", torch.arange(12)),
            ("b", torch.tensor([True, False, True, True])),
            ("n", 3),
        ]
        for kind in mends.KINDS:
            changed_leaves, changed = mends.change_all(leaves, kind, 1)
            self.assertEqual(changed, 2, kind)
            for (name, before), (other, after) in zip(leaves, changed_leaves):
                self.assertEqual(name, other)
                if isinstance(before, torch.Tensor):
                    self.assertEqual((before.shape, before.dtype), (after.shape, after.dtype))
                else:
                    self.assertEqual(before, after)
            again, _ = mends.change_all(leaves, kind, 1)
            self.assertTrue(torch.equal(changed_leaves[0][1], again[0][1]))

    def test_kinds_lie_beside_those_of_gate_1_and_have_words(self):
        self.assertGreaterEqual(mends.FIRST, 64)
        words = [entry["words"] for entry in mends.catalog()]
        self.assertEqual(len(set(words)), len(mends.KINDS))


class RequestsTest(JudgeCase):
    def audit(self, source, operators_alone=0):
        """Loads a problem, draws into slot 0, lists its mutants."""
        self.judge.load(source)
        self.judge.lay_out(3)
        self.judge.request(wire.STORE_WEIGHTS, 0)
        self.judge.draw(3, 0, 0)
        self.judge.evaluate(0, 0)
        memory = os.memfd_create("assay-test-text")
        try:
            size = self.judge.request(wire.MUTANTS, 0, operators_alone, fd=memory)[0]
            self.catalog = json.loads(os.pread(memory, size, 0))
        finally:
            os.close(memory)
        return [mutant["words"] for mutant in self.catalog["mutants"]]

    def mutate(self, words, slot=0, target=2):
        """Returns (changed, threw) of the mutant; its outputs lie in the target."""
        numbers = [i for i, m in enumerate(self.catalog["mutants"]) if m["words"] == words]
        self.assertEqual(len(numbers), 1, (words, self.catalog["mutants"]))
        return tuple(self.judge.request(wire.MUTATE, numbers[0], slot, target)[:2])

    def test_outputs_that_were_not_computed(self):
        self.audit(SOFTMAX)
        truth = self.judge.tensor("out", 0).clone()
        out = self.judge.tensor("out", 2)
        self.assertEqual(self.mutate("all zero"), (1, 0))
        self.assertFalse(bool(out.any()))
        self.mutate("its mean everywhere")
        self.assertTrue(torch.allclose(out, truth.mean().expand_as(out)))
        self.mutate("of another draw")
        self.assertFalse(torch.equal(out, truth))
        self.assertTrue(torch.allclose(out.sum(1), torch.ones(16)))
        self.mutate("a copy of x")
        self.assertTrue(torch.equal(out, self.judge.tensor("x", 0)))
        self.mutate("the first of the batch for all")
        self.assertTrue(torch.equal(out, truth[:1].expand_as(out)))
        self.mutate("with zeros in the last block")
        self.assertTrue(torch.equal(out[:15], truth[:15]) and not bool(out[15].any()))
        out.fill_(7)
        self.mutate("with the last block unwritten")
        self.assertTrue(torch.equal(out[:15], truth[:15]) and bool((out[15] == 7).all()))
        self.assertTrue(torch.equal(self.judge.tensor("out", 0), truth))

    def test_ignored_weights_and_precision_leave_the_model_as_it_was(self):
        words = self.audit(LINEAR)
        self.judge.evaluate(0, 0)
        truth = self.judge.tensor("out", 0).clone()
        weight = [text for text in words if text.startswith("layer.weight as if it were ")]
        self.assertEqual(self.mutate(weight[0]), (1, 0))
        self.assertEqual(self.mutate("computed in bfloat16"), (1, 0))
        rounded = self.judge.tensor("out", 2)
        self.assertTrue(torch.equal(rounded, rounded.to(torch.bfloat16).float()))
        self.judge.evaluate(0, 0)
        self.assertTrue(torch.equal(self.judge.tensor("out", 0), truth))

    def test_a_weight_that_nothing_depends_on_changes_nothing(self):
        words = self.audit(
            problem(
                "return x * self.scale + 0 * self.unused",
                init="self.scale = nn.Parameter(torch.randn(6)); "
                "self.unused = nn.Parameter(torch.randn(6))",
            )
        )
        of = {
            name: [text for text in words if text.startswith(name)] for name in ("scale", "unused")
        }
        self.assertEqual(self.mutate(of["scale"][0]), (1, 0))
        self.assertEqual(self.mutate(of["unused"][0]), (0, 0))

    def test_an_ignored_input_is_taken_from_another_draw_of_the_same_kind(self):
        words = self.audit(
            problem(
                "return x * 2", arguments="self, x, y", inputs="[torch.randn(8), torch.randn(8)]"
            )
        )
        self.assertEqual(self.mutate("y of another draw"), (0, 0))
        self.assertEqual(self.mutate("x of another draw"), (1, 0))
        self.judge.draw(5, 4, 1)  # huge scale
        self.judge.evaluate(1, 0)
        self.mutate("x of another draw", slot=1)
        self.assertGreater(self.judge.tensor("out", 2).abs().max().item(), 1e4)
        self.assertIn("a copy of y", words)

    def test_inputs_that_never_vary_are_named_and_single_numbers_are_not(self):
        words = self.audit(
            problem(
                "return x * mask * factor",
                arguments="self, x, mask, factor",
                inputs="[torch.randn(3, 3), torch.tril(torch.ones(3, 3)), 1.5]",
            )
        )
        self.assertIn("any other mask: it is the same in every draw", words)
        self.assertFalse([text for text in words if text.startswith("factor")])

    def test_integers_and_several_outputs_are_mutated_one_at_a_time(self):
        self.audit(problem("return tuple(x.max(dim=1))"))
        values_of = self.judge.tensor("out", 0).clone()
        self.assertEqual(self.mutate("out1 all zero")[1], 0)
        self.assertTrue(torch.equal(self.judge.tensor("out", 2), values_of))
        self.assertFalse(bool(self.judge.tensor("out1", 2).any()))

    def test_operators_alone_know_what_leaving_them_out_saves(self):
        source = "return torch.sigmoid(x) + 1e-8 * torch.tanh(x @ x.t())"
        self.audit(problem(source, inputs="[torch.randn(64, 64)]"), 1)
        self.assertEqual({mutant["family"] for mutant in self.catalog["mutants"]}, {"operator"})
        names = [one["name"] for one in self.catalog["operators"]]
        self.assertEqual(names, ["sigmoid", "mm", "tanh", "mul", "add"])
        shares = {m["words"]: m["time_share"] for m in self.catalog["mutants"]}
        branch = next(share for words, share in shares.items() if "drops its second term" in words)
        sigmoid = next(share for words, share in shares.items() if "drops its first term" in words)
        product = next(share for words, share in shares.items() if words.startswith("mm"))
        self.assertGreater(branch, product)  # with tanh and the factor
        self.assertLess(sigmoid, branch)
        self.assertTrue(all(0 <= share <= 1 for share in shares.values()), shares)
        words = [m["words"] for m in self.catalog["mutants"] if m["words"].startswith("tanh")]
        self.assertEqual(self.mutate(words[0]), (1, 0))

    def test_calls_of_a_loop_stand_for_all_calls_of_their_line(self):
        # Without the loop's products 20 of 21 are saved. Only some of the calls have mutants.
        source = """y = x @ x
        for _ in range(20):
            y = y + 1e-9 * (x @ x)
        return y"""
        self.audit(problem(source, inputs="[torch.randn(256, 256)]"), 1)
        words = "drops its second term"
        terms = [m for m in self.catalog["mutants"] if words in m["words"]]
        self.assertLess(len(terms), 20)
        self.assertGreater(sum(m["time_share"] for m in terms), 0.8)

    def test_operators_alone_that_cannot_be_mutated_so_change_nothing(self):
        # Without its second operand, a number, the sum has no other term.
        self.audit(problem("return x + 1"), 1)
        words = [m["words"] for m in self.catalog["mutants"] if "first term" in m["words"]]
        self.assertEqual(self.mutate(words[0]), (0, 0))

    def test_a_mutant_that_throws_says_so(self):
        self.audit(
            problem(
                "return x[int(index.sum()) % 4] if int(index[0]) == first else x[[99]]",
                arguments="self, x, index, first",
                inputs="(lambda n: [torch.randn(4, 6), torch.tensor([n, 1]), n])"
                "(int(torch.randint(0, 2**40, (1,))))",
            )
        )
        self.assertEqual(self.mutate("index of another draw")[1], 1)

    def test_a_forward_that_changes_its_inputs_gets_copies(self):
        self.audit(problem("x += 1; return x * 2"))
        before = self.judge.tensor("x", 0).clone()
        self.mutate("mul in line 9 drops its second factor")
        self.assertTrue(torch.equal(self.judge.tensor("x", 0), before))
        self.assertTrue(torch.allclose(self.judge.tensor("out", 2), before + 1))


if __name__ == "__main__":
    unittest.main()
