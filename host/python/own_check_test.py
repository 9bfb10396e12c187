"""Tests the problem's own check: how it is found, what it gets, and what becomes of its answer."""

import os
import unittest

from fake_judge import Judge, Refused, failure, torch, wire
from sample_problems import problem

ROWS = "[torch.randn(4, 6)]"


class CheckCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.judge = Judge()
        cls.addClassCleanup(cls.judge.close)

    def load(self, check, **parts):
        """Loads a problem with this check, and makes a draw in slot 0. Returns the flags."""
        parts.setdefault("forward", "return x.argsort(-1)")
        flags = self.judge.load(problem(**parts) + check)[1]
        self.judge.lay_out(2)
        self.judge.store_weights()
        self.judge.draw(3)
        self.judge.evaluate()
        return flags

    def ask(self, **outputs):
        """Asks about the reference's outputs, but for those that are given. Returns the sentence of
        the check, or None.
        """
        judge = self.judge
        fd = os.memfd_create("outputs")
        try:
            os.truncate(fd, judge.plan.output_stride)
            for spec in (spec for spec in judge.specs if spec.role == wire.OUTPUT):
                name = spec.name.decode()
                tensor = outputs.get(name, judge.tensor(name)).contiguous()
                os.pwrite(fd, tensor.numpy().tobytes(), spec.offset)
            right = judge.request(wire.CHECK, 0, fd=fd)[0]
        finally:
            os.close(fd)
        return None if right else judge.message()

    def refused(self, number, text, **outputs):
        with self.assertRaises(Refused) as caught:
            self.ask(**outputs)
        self.assertEqual(caught.exception.number, number)
        self.assertIn(text, str(caught.exception))


class OwnCheckTest(CheckCase):
    def test_a_problem_without_one_has_no_flag_and_no_answer(self):
        self.assertFalse(self.load("") & 16)
        self.refused(failure.ENVIRONMENT, "has no check")

    def test_none_is_right_and_a_sentence_is_told(self):
        check = (
            "def check(inputs, outputs):\n"
            "    ordered = inputs[0].gather(-1, outputs[0])\n"
            "    wrong = (ordered.diff(dim=-1) < 0).any(-1).tolist()\n"
            "    return f'row {wrong.index(True)} is\\n not in order' if any(wrong) else None\n"
        )
        self.assertTrue(self.load(check) & 16)
        self.assertIsNone(self.ask())
        other = self.judge.tensor("out").clone()
        other[2] = other[2].flip(-1)
        self.assertEqual(self.ask(out=other), "row 2 is not in order")

    def test_inputs_are_those_before_the_call_and_changed_ones_are_outputs(self):
        check = (
            "def check(inputs, outputs):\n"
            "    x, factor = inputs\n"
            "    total, changed = outputs\n"
            "    assert total.dtype == torch.float32 and factor == 3\n"
            "    return None if torch.equal(changed, x * factor) else 'x is not tripled'\n"
        )
        self.load(
            check,
            forward="x.mul_(factor); return x.sum(-1)",
            arguments="self, x, factor",
            inputs="[torch.randn(4, 6), 3]",
        )
        self.assertIsNone(self.ask())
        self.assertEqual(self.ask(x_after=self.judge.tensor("x")), "x is not tripled")

    def test_what_the_check_changes_is_a_copy(self):
        check = "def check(inputs, outputs):\n    inputs[0].zero_()\n    outputs[0].zero_()\n"
        self.load(check)
        before = [self.judge.tensor(name).clone() for name in ("x", "out")]
        self.assertIsNone(self.ask())
        for name, value in zip(("x", "out"), before):
            self.assertTrue(torch.equal(self.judge.tensor(name), value))

    def test_a_third_argument_is_the_model_with_the_weights_of_the_call(self):
        check = (
            "def check(inputs, outputs, model):\n"
            "    return None if torch.equal(model(*inputs), outputs[0]) else 'other weights'\n"
        )
        self.load(check, forward="return self.layer(x)", init="self.layer = nn.Linear(6, 2)")
        self.assertIsNone(self.ask())
        self.judge.tensor("layer_weight").add_(1)
        self.assertEqual(self.ask(), "other weights")

    def test_random_numbers_of_a_check_are_the_same_each_time(self):
        self.load("def check(inputs, outputs):\n    return str(torch.rand(()).item())\n")
        self.assertEqual(self.ask(), self.ask())

    def test_an_exception_is_the_problems_fault(self):
        self.load("def check(inputs, outputs):\n    return inputs[0].gather(-1, outputs[0])[9]\n")
        self.refused(failure.PROBLEM_CHECK, "own check fails: problem.py line 15")

    def test_another_answer_than_none_or_a_sentence_is_the_problems_fault(self):
        for answer in ("True", "False", "''", "outputs"):
            self.load(f"def check(inputs, outputs):\n    return {answer}\n")
            self.refused(failure.PROBLEM_CHECK, "must return None if the outputs are right")

    def test_a_check_that_cannot_be_called_is_refused(self):
        for check in ("def check(x): pass\n", "check = 3\n", "def check(a, b, c, d): pass\n"):
            with self.assertRaises(Refused) as caught:
                self.load(check)
            self.assertEqual(caught.exception.number, failure.PROBLEM_LOAD)
            self.assertIn("must be a function check(inputs, outputs)", str(caught.exception))

    def test_gradients_of_a_problem_with_a_check_are_refused(self):
        added = "\nfrom assay_host import gradients\ngradients.of_problem(globals())\n"
        with self.assertRaises(Refused) as caught:
            self.load("def check(inputs, outputs): pass\n" + added, forward="return x * 2")
        self.assertIn("knows nothing of gradients", str(caught.exception))


class ReadyChecks(CheckCase):
    """Factorisations, whose right answers were 'off by a factor of -1.000'."""

    SQUARE = "[torch.randn(2, 8, 8)]"

    def test_other_signs_pass_and_wrong_answers_do_not(self):
        for name, outputs in (
            ("eigh", ("out", "out1")),  # which reads the lower triangle alone
            ("svd", ("out", "out1", "out2")),
            ("qr", ("out", "out1")),
        ):
            forward = f"return torch.linalg.{name}(x)"
            flags = self.load(f"check = '{name}'\n", forward=forward, inputs=self.SQUARE)
            self.assertTrue(flags & 16)
            self.assertIsNone(self.ask())
            found = [self.judge.tensor(output) for output in outputs]
            if name == "eigh":
                self.assertIsNone(self.ask(out1=-found[1]))
                self.assertIn("not orthonormal", self.ask(out1=found[1] * 1.001))
                self.assertIn("A V is not V L", self.ask(out=found[0] * 1.001))
                swapped = {n: x.flip(-1) for n, x in zip(outputs, found)}
                self.assertIn("not in the order", self.ask(**swapped))
                self.assertIn("A V is not", self.ask(out=found[0] * float("nan")))
            else:
                turned = {outputs[0]: -found[0], outputs[-1]: -found[-1]}
                self.assertIsNone(self.ask(**turned))
                self.assertIn("is not A", self.ask(out=-found[0]))
                self.assertIn("orthonormal", self.ask(out=found[0] * 1.001))
            if name == "qr":
                lower = found[1].clone()
                lower[..., 5, 2] += 1
                self.assertIsNotNone(self.ask(out1=lower))

    def test_a_problem_that_calls_one_is_known(self):
        for forward, number in (
            ("return x.sum()", 0),
            ("return self.qr(x)", 0),
            ("return torch.linalg.eigh(x @ x.T)[1]", 1),
            ("return x.svd().U", 2),
            ("return torch.linalg.qr(x).R", 3),
            ("return torch.view_as_real(torch.linalg.eig(x @ x.T)[0])", 4),
        ):
            init = "self.qr = nn.Linear(6, 3)"
            self.assertEqual(self.judge.load(problem(forward, init=init))[1] >> 8, number, forward)

    def test_an_unknown_name_is_refused(self):
        with self.assertRaises(Refused) as caught:
            self.load("check = 'lu'\n")
        self.assertIn("or one of the texts eigh, svd, qr", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
