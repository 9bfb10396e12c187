"""Tests the candidate host: weights, results, and the faults of candidates."""

import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

from blocks_test import is_poison
from fake_judge import SUPPORT, Judge, Refused, failure, torch, wire
from sample_problems import LINEAR, SOFTMAX, problem

# A filter that refuses execve and execveat with EPERM and allows the rest.
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _EPERM = 0x7FFF0000, 0x00050001
_EXECVE = {"x86_64": (59, 322), "aarch64": (221, 281)}[os.uname().machine]
LOCKDOWN = b"".join(
    struct.pack("=HBBI", *row)
    for row in (
        (_LOAD, 0, 0, 0),
        (_EQUAL, 2, 0, _EXECVE[0]),
        (_EQUAL, 1, 0, _EXECVE[1]),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _EPERM),
    )
)

NEW_HEAD = "import torch\nclass ModelNew(torch.nn.Module):\n"
NEW_SOFTMAX = """
import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        e = torch.exp(x - x.max(1, keepdim=True).values)
        return e / e.sum(1, keepdim=True)
"""


class CandidateTest(unittest.TestCase):
    """The reference host describes the problem and fills slots; fresh candidates run on them."""

    @classmethod
    def setUpClass(cls):
        cls.reference = Judge()

    @classmethod
    def tearDownClass(cls):
        cls.reference.close()

    def describe(self, source, slots=2):
        self.reference.load(source)
        self.reference.lay_out(slots)
        self.reference.store_weights()
        for slot in range(slots):
            self.reference.draw(50 + slot, 0, slot)
            self.reference.evaluate(slot, 0)

    def start(self, source, lockdown=LOCKDOWN, root=None, role="candidate"):
        """Starts a candidate's host, or the opponent's, with everything attached; the caller calls
        load().
        """
        judge = Judge(role, lockdown=lockdown, root=root)
        self.addCleanup(judge.close)
        name = "candidate" if role == "candidate" else "problem"
        judge.write(f"{name}/{name}.py", source)
        if role == "candidate":
            judge.write("candidate/init.pickle", self.reference.record)
        judge.lay_out(
            self.reference.plan.slot_count,
            specs=self.reference.specs,
            weights=self.reference.regions[wire.WEIGHTS],
            inputs=self.reference.regions[wire.INPUTS],
            inputs_writable=False,
        )
        return judge

    def load(self, judge, role="candidate"):
        """Loads in two parts; an opponent gets the construction record with the first."""
        if role == "candidate":
            judge.request(wire.LOAD, 1)
            return judge.request(wire.LOAD)
        record = os.memfd_create("assay-record")
        self.addCleanup(os.close, record)
        os.write(record, self.reference.record)
        judge.request(wire.LOAD, 1, fd=record)
        return judge.request(wire.LOAD)

    def run_candidate(self, candidate, order=(1, 0), **keywords):
        """Returns (judge, kLoad's first result, calls that failed, Failure of the first)."""
        judge = self.start(candidate, **keywords)
        how = self.load(judge, keywords.get("role", "candidate"))[0]
        judge.enter_blocks()
        judge.run_block(list(order))
        failed, number = judge.leave_blocks()[:2]
        return judge, how, failed, number

    def assert_agrees(self, judge, names=("out",), slots=(0, 1)):
        for name in names:
            for slot in slots:
                self.assertTrue(
                    torch.allclose(
                        judge.tensor(name, slot), self.reference.tensor(name, slot), atol=1e-6
                    )
                )

    def load_refused(self, candidate, number, *parts, **keywords):
        judge = self.start(candidate, **keywords)
        with self.assertRaises(Refused) as caught:
            self.load(judge, keywords.get("role", "candidate"))
        self.assertEqual(caught.exception.number, number, caught.exception)
        for part in parts:
            self.assertIn(part, judge.message())
        self.assertNotIn("Traceback", judge.message())
        return judge


class Runs(CandidateTest):
    def test_softmax_agrees_with_the_reference(self):
        self.describe(SOFTMAX)
        judge, how, failed, _ = self.run_candidate(NEW_SOFTMAX)
        self.assertEqual((how, failed), (3, 0))
        self.assert_agrees(judge)

    def test_weights_come_by_name_by_order_or_from_the_seed(self):
        self.describe(LINEAR)
        template = """
import torch, torch.nn as nn
class ModelNew(nn.Module):
    def __init__(self, width, out_features):
        super().__init__()
        %s
    def forward(self, x):
        return torch.relu(%s)
"""
        named = template % ("self.layer = nn.Linear(width, out_features)", "self.layer(x)")
        ordered = template % (
            "self.w = nn.Parameter(torch.zeros(out_features, width)); "
            "self.b = nn.Parameter(torch.zeros(out_features))",
            "x @ self.w.T + self.b",
        )
        # The same module, constructed under the same seed, but with one more parameter.
        more = template % (
            "self.layer = nn.Linear(width, out_features); self.more = nn.Parameter(torch.zeros(1))",
            "self.layer(x) + self.more",
        )
        # Its weight is stored transposed.
        seeded = template % (
            "layer = nn.Linear(width, out_features); "
            "self.w = nn.Parameter(layer.weight.detach().t().contiguous()); "
            "self.b = nn.Parameter(layer.bias.detach())",
            "x @ self.w + self.b",
        )
        for candidate, expected in (
            (named, [0, 0, 0, 0]),
            (ordered, [1, 0, 0, 0]),
            (more, [0, 1, 0, 0]),
            (seeded, [2, 2, 2, 3]),
        ):
            judge = self.start(candidate)
            self.assertEqual(list(self.load(judge)[:4]), expected)
            judge.enter_blocks()
            judge.run_block([1, 0])
            self.assertEqual(judge.leave_blocks()[0], 0)
            self.assert_agrees(judge)

    def test_a_file_that_reads_its_arguments_finds_itself_alone(self):
        """It found the host's own, and argparse refused them."""
        parses = (
            "import argparse\nparser = argparse.ArgumentParser()\n"
            "parser.add_argument('--factor', type=float, default=2.0)\n"
            "factor = parser.parse_args().factor\nimport sys; assert sys.argv == [__file__]"
        )
        source = problem("return x * factor", extra=parses)
        self.describe(source)
        judge, _, failed, _ = self.run_candidate(source.replace("class Model", "class ModelNew"))
        self.assertEqual(failed, 0, judge.message())
        self.assert_agrees(judge)

    def test_nested_inputs_numbers_constants_and_several_outputs(self):
        source = problem(
            "return x * n + parts['a'][0] + len(mode), x.argmax()",
            arguments="self, x, n, parts, mode",
            inputs="[torch.randn(3), 4, {'a': [torch.randn(3)]}, 'ab']",
        )
        self.describe(source)
        judge, _, failed, _ = self.run_candidate(source.replace("class Model", "class ModelNew"))
        self.assertEqual(failed, 0)
        self.assert_agrees(judge, ("out", "out1"))

    def test_complex_inputs_and_weights_travel_as_their_parts(self):
        """A buffer such as rotary embeddings' freqs_cis was refused, and so was such an input."""
        source = problem(
            "return torch.view_as_real(torch.view_as_complex(x) * z * self.freqs_cis), w",
            init="self.register_buffer('freqs_cis', torch.polar(torch.ones(3), torch.arange(3.)))",
            arguments="self, x, z, w",
            inputs="[torch.randn(4, 3, 2), torch.randn(3, 4, dtype=torch.complex64).t(), 2]",
        )
        self.describe(source)
        rows = self.reference.signature()
        self.assertEqual(rows[1], "input z float32[3, 4, 2]")  # the memory of a view
        self.assertEqual(rows[3], "parameter freqs_cis float32[3, 2]")
        copied = source.replace("class Model", "class ModelNew")
        judge, how, failed, _ = self.run_candidate(copied)
        self.assertEqual((how, failed), (0, 0), judge.message())
        self.assert_agrees(judge)
        self.reference.evaluate(0, 1)
        exact, own = self.reference.oracle("out"), self.reference.tensor("out")
        self.assertTrue(0 < (exact - own).abs().max() < 1e-5)
        judge, _, _, _ = self.run_candidate(copied.replace("* self.freqs_cis", "* 1"))
        self.assertFalse(torch.allclose(judge.tensor("out"), own))

    def test_batch_norm_in_training_mode(self):
        source = problem("return self.norm(x)", init="self.norm = nn.BatchNorm1d(6)")
        self.describe(source)
        judge, how, failed, _ = self.run_candidate(
            source.replace("class Model", "class ModelNew"), order=(0, 1, 0)
        )
        self.assertEqual((how, failed), (0, 0))
        self.assert_agrees(judge)

    def test_the_default_type_that_a_problem_sets_holds_for_candidates(self):
        source = "import torch\ntorch.set_default_dtype(torch.float64)\n" + LINEAR
        self.describe(source)
        plain = source.replace("torch.set_default_dtype(torch.float64)", "")
        judge, how, failed, _ = self.run_candidate(
            plain.replace("class Model", "class ModelNew"), order=(0, 1, 0)
        )
        self.assertEqual((how, failed), (0, 0), judge.message())
        self.assert_agrees(judge)

    def test_a_candidate_may_change_its_inputs_only_where_the_reference_does(self):
        source = problem("x.mul_(2)\n        return x")
        self.describe(source)
        judge = self.start(source.replace("class Model", "class ModelNew"))
        self.load(judge)
        judge.enter_blocks()
        for slot in (0, 1):
            judge.tensor("x_after", slot).copy_(judge.tensor("x", slot))
        judge.run_block([1, 0])
        self.assertEqual(judge.leave_blocks()[0], 0)
        self.assert_agrees(judge, ["x_after"])

    def test_the_host_is_locked_down_before_the_candidate_is_imported(self):
        """A child that was forked by the import answered the judge, while the process that the
        judge stopped slept.
        """
        self.describe(SOFTMAX)
        starts = 'subprocess.check_call(["/bin/true"])'
        text = """
import subprocess, torch
%s
class ModelNew(torch.nn.Module):
    def forward(self, x):
        %s
        return torch.softmax(x, 1)
"""
        self.load_refused(
            text % (starts, "pass"), failure.CANDIDATE_LOAD, "candidate.py line 3: PermissionError"
        )
        judge, _, failed, number = self.run_candidate(text % ("", starts))
        self.assertEqual((failed, number), (2, failure.CANDIDATE_FORWARD))
        self.assertIn("candidate.py line 6: PermissionError", judge.message())

    def test_a_lockdown_file_that_is_no_program_is_an_error_of_the_environment(self):
        self.describe(SOFTMAX)
        self.load_refused(NEW_SOFTMAX, failure.ENVIRONMENT, "lock", lockdown=b"12345")


class Opponent(CandidateTest):
    """The problem's own Model, in a host that loads as a candidate's does."""

    def run_opponent(self, source, order=(1, 0)):
        self.describe(source)
        judge, _, failed, number = self.run_candidate(source, order, role="opponent")
        return judge, failed, number

    def test_the_model_runs_on_the_judges_weights(self):
        judge, failed, _ = self.run_opponent(LINEAR)
        self.assertEqual(failed, 0, judge.message())
        self.assert_agrees(judge)

    def test_forward_may_change_its_parameters(self):
        body = "self.calls.data.add_(1); return x + self.shift"
        init = "self.calls = nn.Parameter(torch.zeros(1)); self.shift = nn.Parameter(torch.ones(6))"
        judge, failed, _ = self.run_opponent(problem(body, init=init))
        self.assertEqual(failed, 0, judge.message())
        self.assert_agrees(judge)

    def test_lazy_parameters_are_there(self):
        source = problem("return self.layer(x)", init="self.layer = nn.LazyLinear(3)")
        judge, failed, _ = self.run_opponent(source)
        self.assertEqual(failed, 0, judge.message())
        self.assert_agrees(judge)
        own_form = source.replace("class Model", "class ModelNew")
        judge, how, failed, _ = self.run_candidate(own_form)
        self.assertEqual((how, failed), (0, 0), judge.message())
        self.assert_agrees(judge)

    def test_failures_are_the_problems(self):
        self.describe(SOFTMAX)
        fails = SOFTMAX.replace("return", "raise ValueError('broken')\n        return", 1)
        judge, _, failed, number = self.run_candidate(fails, role="opponent")
        self.assertEqual((failed, number), (2, failure.PROBLEM_FORWARD))
        self.assertIn("problem.py line", judge.message())
        self.load_refused("x = 1", failure.PROBLEM_LOAD, "problem.py", role="opponent")
        self.load_refused("import nowhere", failure.PROBLEM_NOT_HERE, "problem.py", role="opponent")


class GoesWrong(CandidateTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.reference.load(SOFTMAX)

    def setUp(self):
        self.describe(SOFTMAX)

    def test_files_that_do_not_load(self):
        self.load_refused(
            "def f(:\n", failure.CANDIDATE_LOAD, "candidate.py line 1", "not valid Python"
        )
        self.load_refused(
            "\nundefined_name\n", failure.CANDIDATE_LOAD, "candidate.py line 2", "NameError"
        )
        self.load_refused(b"\x7fELF\0\1", failure.CANDIDATE_LOAD, "candidate.py")
        self.load_refused("raise SystemExit(0)\n", failure.CANDIDATE_LOAD, "line 1", "sys.exit(0)")

    def test_a_missing_entry(self):
        self.load_refused("", failure.CANDIDATE_ENTRY, "no class ModelNew")
        self.load_refused(
            "class Model: pass\n",
            failure.CANDIDATE_ENTRY,
            "no class ModelNew",
            "call the candidate's ModelNew",
        )
        self.load_refused("class ModelNew: pass\n", failure.CANDIDATE_ENTRY, "no forward")

    def test_a_constructor_that_throws(self):
        self.load_refused(
            NEW_SOFTMAX.replace(
                "    def forward", "    def __init__(self, n): pass\n    def forward"
            ),
            failure.CANDIDATE_LOAD,
            "ModelNew(0 arguments) fails",
            "missing 1 required",
        )

    def test_forward_that_throws_leaves_poison_and_its_line(self):
        judge, _, failed, number = self.run_candidate(
            NEW_SOFTMAX.replace("return e /", "return e @")
        )
        self.assertEqual((failed, number), (2, failure.CANDIDATE_FORWARD))
        self.assertIn("candidate.py line 6: RuntimeError", judge.message())
        self.assertTrue(is_poison(judge.tensor("out", 0)))

    def test_results_that_do_not_fit_leave_poison_and_a_reason(self):
        for expression, part in (
            ("x[:, 1:]", "output out is float32[16, 31]; the problem has float32[16, 32]"),
            ("x.double()", "output out is float64[16, 32]"),
            ("(x, x)", "2 outputs"),
            ("None", "0 outputs"),
            ("'x'", "str"),
        ):
            judge, _, failed, number = self.run_candidate(
                NEW_HEAD + f"    def forward(self, x): return {expression}\n"
            )
            self.assertEqual((failed, number), (2, failure.CANDIDATE_OUTPUT))
            self.assertIn(part, judge.message())
            self.assertTrue(is_poison(judge.tensor("out", 0)) and is_poison(judge.tensor("out", 1)))

    def test_a_write_to_the_inputs_ends_the_host_and_is_told(self):
        judge = self.start(NEW_HEAD + "    def forward(self, x): return x.mul_(2)\n")
        judge.request(wire.LOAD)
        judge.enter_blocks()
        with self.assertRaises(ConnectionError):
            judge.run_block([1])
        self.assertEqual(os.WTERMSIG(judge.status), signal.SIGSEGV)
        self.assertEqual((judge.report.fault, judge.report.fault_signal), (1, signal.SIGSEGV))
        self.assertEqual(judge.report.fault_region, wire.INPUTS)
        begin = judge.plan.input_stride + judge.spec("x").offset
        self.assertTrue(begin <= judge.report.fault_address < begin + judge.spec("x").size_bytes)

    def test_an_abort_is_told_and_an_exit_is_just_that(self):
        for action, signal_number in (("os.abort()", signal.SIGABRT), ("os._exit(0)", 0)):
            judge = self.start(
                "import os, torch\nclass ModelNew(torch.nn.Module):\n"
                f"    def forward(self, x): {action}\n"
            )
            judge.request(wire.LOAD)
            judge.enter_blocks()
            with self.assertRaises(ConnectionError):
                judge.run_block([1])
            self.assertEqual(judge.status & 0x7F, signal_number)
            self.assertEqual(judge.report.fault_signal, signal_number)

    def test_a_result_in_the_slot_itself_does_not_count(self):
        """A candidate that finds its slot saves the copy that the reference pays for."""
        finds_its_slot = (
            "import sys, torch\nclass ModelNew(torch.nn.Module):\n"
            "    def forward(self, x):\n"
            "        frame = sys._getframe(1)\n"
            "        while 'outputs' not in frame.f_locals: frame = frame.f_back\n"
            "        slot = frame.f_locals['outputs'][frame.f_locals['slot']][0]\n"
            "        torch.softmax(x, 1, out=slot)\n"
            "        return %s\n"
        )
        self.describe(SOFTMAX)
        judge, _, failed, number = self.run_candidate(finds_its_slot % "slot")
        self.assertEqual((failed, number), (2, failure.CANDIDATE_OUTPUT))
        self.assertIn("never given", judge.message())
        self.assertTrue(judge.tensor("out", 1).isnan().all())
        _, _, failed, number = self.run_candidate(finds_its_slot % "(slot.detach(),)")
        self.assertEqual((failed, number), (2, failure.CANDIDATE_OUTPUT))
        # What it puts in the place of PyTorch's own functions does not help.
        judge, _, failed, _ = self.run_candidate(
            finds_its_slot.replace("class", "torch.Tensor.copy_ = lambda *_: None\nclass")
            % "torch.zeros_like(x)"
        )
        self.assertEqual(failed, 0)
        self.assertFalse(judge.tensor("out", 1).any())

    def test_sys_exit_inside_forward_ends_nothing(self):
        _, _, failed, number = self.run_candidate(
            NEW_SOFTMAX.replace("return e /", "raise SystemExit(0)\n        return e /")
        )
        self.assertEqual((failed, number), (2, failure.CANDIDATE_FORWARD))

    def test_a_missing_record_is_told(self):
        judge = self.start(NEW_SOFTMAX)
        os.unlink(os.path.join(judge.root, "candidate", "init.pickle"))
        with self.assertRaises(Refused) as caught:
            judge.request(wire.LOAD)
        self.assertEqual(caught.exception.number, failure.CANDIDATE_LOAD)


if __name__ == "__main__":
    unittest.main()
