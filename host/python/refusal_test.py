"""Tests the reference host's refusals: every failure that it can report, with a helpful message."""

import unittest

from fake_judge import Judge, Refused, failure, wire
from reference_test import ReferenceTest
from sample_problems import SOFTMAX, problem


class Refuses(ReferenceTest):
    def test_a_file_that_is_not_python(self):
        self.refused("def f(:\n", failure.PROBLEM_LOAD, "problem.py line 1", "not valid Python")
        self.refused(b"\x7fELF\0\0\0", failure.PROBLEM_LOAD, "not Python")
        self.refused(b"x = '\xff\xfe'\n", failure.PROBLEM_LOAD, "problem.py")

    def test_a_missing_model_or_get_inputs(self):
        self.refused("", failure.PROBLEM_LOAD, "no Model", "no get_inputs")
        self.refused(
            "import torch\nclass Model(torch.nn.Module): pass\n",
            failure.PROBLEM_LOAD,
            "no get_inputs",
        )
        self.refused(
            "class Model: pass\ndef get_inputs(): return []\n", failure.PROBLEM_LOAD, "nn.Module"
        )

    def test_an_exception_while_loading_names_its_line(self):
        self.refused(
            "import torch\nimport no_such_package\n",
            failure.PROBLEM_NOT_HERE,
            "line 2",
            "no_such_package",
        )
        self.refused("import sys\nsys.exit(0)\n", failure.PROBLEM_LOAD, "line 2", "sys.exit(0)")
        self.refused(
            problem("return x", init="raise ValueError('no weights')"),
            failure.PROBLEM_LOAD,
            "no weights",
            "line 7",
        )

    def test_get_inputs_that_throws_or_returns_what_cannot_be_passed(self):
        self.refused(
            problem("return x", inputs="1/0"),
            failure.PROBLEM_INPUTS,
            "get_inputs() fails",
            "ZeroDivision",
        )
        self.refused(
            problem("return x", inputs="None"),
            failure.PROBLEM_INPUTS,
            "must return a list",
        )
        self.refused(
            problem("return x", init_inputs="1/0"), failure.PROBLEM_INPUTS, "get_init_inputs()"
        )
        self.refused(
            problem("return x", inputs="[torch.ones([1] * 9)]"),
            failure.PROBLEM_INPUTS,
            "9 dimensions",
        )
        self.refused(
            problem("return torch.ones(2)", inputs="[2**70]"), failure.PROBLEM_INPUTS, "64 bits"
        )

    def test_get_inputs_that_changes_shape(self):
        self.load(
            problem(
                "return x.sum()",
                inputs="[torch.randn(next(sizes))]",
                extra="import itertools\nsizes = itertools.count(2)",
            )
        )
        self.judge.lay_out(1)
        with self.assertRaises(Refused) as caught:
            self.judge.draw(1)
        self.assertEqual(caught.exception.number, failure.PROBLEM_INPUTS)
        self.assertIn("call to call", self.judge.message())

    def test_forward_that_throws(self):
        self.refused(problem("return x @ x"), failure.PROBLEM_FORWARD, "problem.py line 9", "4x6")
        self.refused(problem("return x", inputs="[]"), failure.PROBLEM_FORWARD, "missing")

    def test_nan_by_design_is_filled_and_nan_of_rounding_is_refused(self):
        self.load(problem("return x, torch.log(-x.abs() - 1)"))
        self.judge.lay_out(2)
        self.judge.fill(1, 0, 2)
        # Right as it loads; of later inputs the large sum leaves nothing.
        self.load(
            problem(
                "return torch.sqrt((x + 1e8) - 1e8 - x + 1e-3)",
                inputs="[torch.full((4, 6), next(sizes))]",
                extra="import itertools\nsizes = itertools.chain([8.0], itertools.repeat(0.03))",
            )
        )
        self.judge.lay_out(2)
        with self.assertRaises(Refused) as caught:
            self.judge.fill(1, 0, 2)
        self.assertEqual(caught.exception.number, failure.PROBLEM_FORWARD)
        self.assertIn("where float64 gives none", self.judge.message())

    def test_outputs_that_cannot_be_judged(self):
        self.refused(problem("return 'text'"), failure.PROBLEM_OUTPUT, "str")
        self.refused(problem("return None"), failure.PROBLEM_OUTPUT, "nothing")
        self.refused(
            problem("return torch.complex(x, x)"),
            failure.PROBLEM_OUTPUT,
            "complex64; use torch.view_as_real",
        )
        self.refused(problem("return x.to_sparse()"), failure.PROBLEM_OUTPUT, "sparse")
        self.refused(
            problem("return torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)"),
            failure.PROBLEM_OUTPUT,
            "quantised",
        )
        self.refused(problem("return [x, object()]"), failure.PROBLEM_OUTPUT, "object")

    def test_random_and_stateful_forwards(self):
        self.refused(
            problem("return self.drop(x)", init="self.drop = nn.Dropout(0.5)"),
            failure.PROBLEM_RANDOM,
            "inputs; drop (Dropout) draws random numbers in training mode: call self.eval() in the "
            "constructor, or set its probability to 0",
        )
        self.refused(
            problem("return x + torch.rand(6)", init="self.drop = nn.Dropout(0.5)"),
            failure.PROBLEM_RANDOM,
            "inputs; it draws random numbers: torch.rand in line 9",
        )
        self.refused(
            problem("return x * random.random()", extra="import random"),
            failure.PROBLEM_RANDOM,
            "inputs; it draws random numbers",
        )
        # A module that gives the same memory each time.
        self.refused(
            problem(
                "return torch.rand(4, 6, out=self.held)",
                init="self.held = torch.zeros(4, 6)",
            ),
            failure.PROBLEM_RANDOM,
            "inputs; it draws random numbers: torch.rand in line 9",
        )
        self.refused(
            problem("self.calls += 1\n        return x + self.calls", init="self.calls = 0"),
            failure.PROBLEM_RANDOM,
            "earlier calls",
        )
        self.refused(
            problem(
                "self.total += 1\n        return x + self.total",
                init="self.register_buffer('total', torch.zeros(()))",
            ),
            failure.PROBLEM_RANDOM,
        )

    def test_dropout_is_named_wherever_it_is(self):
        """A layer's own, such as an LSTM's, and a function's were 'it draws random numbers'."""
        for forward, init, named in (
            (
                "return self.rnn(x)[0]",
                "self.rnn = nn.LSTM(6, 4, num_layers=2, dropout=0.3)",
                "rnn (LSTM) draws random numbers in training mode: call self.eval()",
            ),
            (
                "x = x[None]; return self.part[0](x, x, x)[0]",
                "self.part = nn.ModuleList([nn.MultiheadAttention(6, 2, dropout=0.5)])",
                "part.0 (MultiheadAttention) draws random numbers in training mode: call",
            ),
            (
                "return F.dropout(F.relu(x), 0.5)",
                "",
                "F.dropout in line 9 draws random numbers in every mode: give it "
                "training=self.training, and call self.eval()",
            ),
            (
                "return F.dropout(x, training=self.training)",
                "",
                "F.dropout in line 9 draws random numbers in training mode: call self.eval()",
            ),
        ):
            self.refused(problem(forward, init=init), failure.PROBLEM_RANDOM, named)

    def test_a_dropout_that_is_off_is_not_random(self):
        self.load(problem("return self.drop(x)", init="self.drop = nn.Dropout(0.5).eval()"))
        self.load(problem("return self.drop(x)", init="self.drop = nn.Dropout(0.0)"))

    def test_parameters_of_unsupported_type(self):
        self.refused(
            problem(
                "return x",
                init="self.register_buffer('p', torch.quantize_per_tensor("
                "torch.ones(2), 0.1, 0, torch.qint8))",
            ),
            failure.PROBLEM_LOAD,
            "parameter p",
            "quantised",
        )

    def test_requests_before_their_time(self):
        with self.assertRaises(Refused) as caught:
            fresh = Judge()
            self.addCleanup(fresh.close)
            fresh.draw(1)
        self.assertEqual(caught.exception.number, failure.ENVIRONMENT)

    def test_an_interpreter_without_pytorch(self):
        judge = Judge(options=("-S",))
        self.addCleanup(judge.close)
        requests = (
            lambda: judge.load(SOFTMAX),
            lambda: judge.draw(1),
            # The judge asks for this before a candidate is loaded, who could say so too.
            lambda: judge.attach(wire.PLAN, 4096, False),
        )
        for role_request in requests:
            with self.assertRaises(Refused) as caught:
                role_request()
            self.assertEqual(caught.exception.number, failure.ENVIRONMENT)
            self.assertIn("PyTorch cannot be imported", judge.message())

    def test_a_host_that_failed_serves_the_next_problem(self):
        self.refused("", failure.PROBLEM_LOAD)
        self.load(SOFTMAX)
        self.run_once()


if __name__ == "__main__":
    unittest.main()
