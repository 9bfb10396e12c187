"""The reference host as the judge sees it: loading, describing, evaluating, and every failure it can report."""

import pickle
import unittest

from fake_judge import Judge, Refused, failure, torch, wire

SOFTMAX = """
import torch
import torch.nn as nn
N = 16
M = N * 2
class Model(nn.Module):
    def __init__(self):
        super().__init__()
    def forward(self, x):
        return torch.softmax(x, dim=1)
def get_inputs():
    return [torch.randn(N, M)]
def get_init_inputs():
    return []
"""

LINEAR = """
import torch, torch.nn as nn
class Model(nn.Module):
    def __init__(self, width, out_features):
        super().__init__()
        self.layer = nn.Linear(width, out_features)
    def forward(self, x):
        return torch.relu(self.layer(x))
def get_inputs():
    return [torch.rand(3, 5)]
def get_init_inputs():
    return [5, 7]
"""


def problem(forward, inputs="[torch.randn(4, 6)]", init="", arguments="self, x", extra="", init_inputs="[]"):
    return f"""
import torch, torch.nn as nn, torch.nn.functional as F
{extra}
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init or 'pass'}
    def forward({arguments}):
        {forward}
def get_inputs():
    return {inputs}
def get_init_inputs():
    return {init_inputs}
"""


class ReferenceTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.judge = Judge()

    @classmethod
    def tearDownClass(cls):
        cls.judge.close()

    def load(self, source, **keywords):
        return self.judge.load(source, **keywords)

    def refused(self, source, number, *parts):
        """Loads a problem that must be refused with this failure, and a text that has all parts."""
        with self.assertRaises(Refused) as caught:
            self.judge.load(source)
        self.assertEqual(caught.exception.number, number, caught.exception)
        text = self.judge.message()
        for part in parts:
            self.assertIn(part, text)
        self.assertNotIn("Traceback", text)
        self.assertLessEqual(len(text.splitlines()), 2)

    def run_once(self, seed=3, kind=0, float64=True):
        self.judge.lay_out(2)
        self.judge.request(wire.STORE_WEIGHTS, 0)
        self.judge.draw(seed, kind, 1)
        self.judge.evaluate(1, 0)
        if float64:
            self.judge.evaluate(1, 1)


class LoadsAndEvaluates(ReferenceTest):
    def test_softmax_is_described_and_evaluated_in_both_precisions(self):
        done = self.load(SOFTMAX)
        self.assertEqual(self.judge.signature(), ["input x float32[16, 32]", "output out float32[16, 32]"])
        self.assertEqual(done[1], 2)  # float64 works, nothing is changed
        self.run_once()
        x = self.judge.tensor("x", 1)
        self.assertGreater(x.std().item(), 0.5)
        self.assertTrue(torch.equal(self.judge.tensor("out", 1), torch.softmax(x, 1)))
        expected = torch.softmax(x.double(), 1)
        oracle = self.judge.oracle("out", 1)
        self.assertLess((oracle - expected).abs().max().item(), 1e-15)
        self.assertGreater((oracle - self.judge.tensor("out", 1).double()).abs().max().item(), 0)

    def test_the_same_seed_gives_the_same_draw_and_another_seed_another(self):
        self.load(SOFTMAX)
        self.judge.lay_out(3)
        for slot, seed in enumerate([5, 5, 6]):
            self.judge.draw(seed, 0, slot)
        self.assertTrue(torch.equal(self.judge.tensor("x", 0), self.judge.tensor("x", 1)))
        self.assertFalse(torch.equal(self.judge.tensor("x", 0), self.judge.tensor("x", 2)))

    def test_weights_are_stored_and_loaded_and_depend_on_the_weights_seed_alone(self):
        self.load(LINEAR)
        self.assertEqual(self.judge.signature(),
                         ["input x float32[3, 5]", "parameter layer_weight float32[7, 5]",
                          "parameter layer_bias float32[7]", "output out float32[3, 7]"])
        self.run_once()
        weight, bias = self.judge.tensor("layer_weight"), self.judge.tensor("layer_bias")
        torch.manual_seed(11)
        expected = torch.nn.Linear(5, 7)
        self.assertTrue(torch.equal(weight, expected.weight))
        x = self.judge.tensor("x", 1)
        self.assertTrue(torch.allclose(self.judge.tensor("out", 1), torch.relu(x @ weight.T + bias), atol=1e-6))
        weight.fill_(2.0)
        bias.fill_(1.0)
        self.judge.request(wire.STORE_WEIGHTS, 1)
        self.judge.evaluate(1, 0)
        self.judge.evaluate(1, 1)
        self.assertTrue(torch.allclose(self.judge.tensor("out", 1)[:, 0], 2 * x.sum(1) + 1, atol=1e-5))
        self.assertTrue(torch.allclose(self.judge.oracle("out", 1)[:, 0], 2 * x.double().sum(1) + 1, atol=1e-12))

    def test_the_construction_record_holds_what_a_candidate_needs(self):
        self.load(LINEAR)
        record = pickle.loads(self.judge.record)
        self.assertEqual(pickle.loads(record["init_inputs"]), [5, 7])
        self.assertEqual(record["parameters"], ["layer.weight", "layer.bias"])

    def test_init_inputs_that_cannot_be_pickled_leave_no_record(self):
        done = self.load(problem("return self.f(x)", init="self.f = f", init_inputs="[lambda x: x]")
                         .replace("__init__(self)", "__init__(self, f)"))
        self.assertEqual(done[3], 0)

    def test_batch_norm_uses_batch_statistics_and_its_buffers_are_restored(self):
        done = self.load(problem("return self.norm(x)", init="self.norm = nn.BatchNorm1d(6)"))
        self.assertEqual(done[1], 2 | 4)
        self.assertIn("parameter norm_num_batches_tracked int64[]", self.judge.signature())
        self.run_once()
        x, first = self.judge.tensor("x", 1), self.judge.tensor("out", 1).clone()
        expected = (x - x.mean(0)) / torch.sqrt(x.var(0, unbiased=False) + 1e-5)
        self.assertTrue(torch.allclose(first, expected, atol=1e-5))
        self.judge.evaluate(1, 0)
        self.assertTrue(torch.equal(self.judge.tensor("out", 1), first))
        self.judge.request(wire.STORE_WEIGHTS, 0)
        self.assertEqual(self.judge.tensor("norm_num_batches_tracked").item(), 0)
        self.assertTrue(torch.equal(self.judge.tensor("norm_running_mean"), torch.zeros(6)))

    def test_several_outputs_of_several_types_are_flattened_in_order(self):
        self.load(problem("return x.sum(), [x.argmax(1), {'k': (x > 0, x.dim())}], 2.5"))
        self.assertEqual(self.judge.signature()[1:],
                         ["output out float32[]", "output out1 int64[4]", "output out2 bool[4, 6]",
                          "output out3 int64[]", "output out4 float64[]"])
        self.run_once()
        x = self.judge.tensor("x", 1)
        self.assertTrue(torch.equal(self.judge.tensor("out", 1), x.sum()))
        self.assertTrue(torch.equal(self.judge.tensor("out1", 1), x.argmax(1)))
        self.assertTrue(torch.equal(self.judge.tensor("out2", 1), x > 0))
        self.assertEqual(self.judge.tensor("out3", 1).item(), 2)
        self.assertEqual(self.judge.oracle("out4", 1).item(), 2.5)

    def test_scalars_nested_inputs_and_constants_reach_forward(self):
        self.load(problem("return x * n + alpha + sum(parts['a']) + (1 if flag else 0) + len(mode) + (rest is None)",
                          arguments="self, x, n, alpha, flag, parts, mode, rest",
                          inputs="[torch.randn(3), 4, 0.5, True, {'a': [torch.ones(3), torch.randn(3)]}, 'ab', None]"))
        self.assertEqual(self.judge.signature(),
                         ["input x float32[3]", "input n int", "input alpha float", "input flag bool",
                          "input parts_a_0 float32[3]", "input parts_a_1 float32[3]", "output out float32[3]"])
        self.run_once()
        self.assertEqual((self.judge.scalar("n", 1), self.judge.scalar("alpha", 1), self.judge.scalar("flag", 1)),
                         (4, 0.5, True))
        x, a, b = (self.judge.tensor(name, 1) for name in ("x", "parts_a_0", "parts_a_1"))
        self.assertTrue(torch.allclose(self.judge.tensor("out", 1), x * 4 + 0.5 + a + b + 1 + 2 + 1))

    def test_names_become_unique_c_identifiers(self):
        self.load(problem("return int + out + self.w[0] + namespace", arguments="self, int, out, namespace",
                          inputs="[torch.randn(2), torch.randn(2), 1.0]",
                          init="self.w = nn.ParameterList([nn.Parameter(torch.ones(2))])"))
        names = [row.split()[1] for row in self.judge.signature()]
        self.assertEqual(names, ["int_", "out", "namespace_", "w_0", "out_2"])

    def test_bfloat16_and_integer_inputs_keep_their_dtypes(self):
        self.load(problem("return x + 1, i * 2, b", arguments="self, x, i, b",
                          inputs="[torch.randn(5).bfloat16(), torch.arange(5, dtype=torch.int8), "
                                 "torch.tensor([True, False])]"))
        self.run_once()
        self.assertEqual(self.judge.signature()[3:],
                         ["output out bfloat16[5]", "output out1 int8[5]", "output out2 bool[2]"])
        x = self.judge.tensor("x", 1)
        self.assertTrue(torch.equal(self.judge.tensor("out", 1), x + 1))
        self.assertTrue(torch.equal(self.judge.oracle("out", 1), x.double() + 1))
        self.assertEqual(self.judge.tensor("out1", 1).tolist(), [0, 2, 4, 6, 8])

    def test_float16_that_this_pytorch_cannot_add_up_is_explained(self):
        source = problem("return x @ x", inputs="[torch.randn(4, 4).half()]")
        try:
            torch.ones(2, 2).half() @ torch.ones(2, 2).half()
        except RuntimeError:
            self.refused(source, failure.PROBLEM_FORWARD, "float16", "--set", "newer PyTorch")
        else:
            self.load(source)

    def test_a_forward_that_changes_its_inputs_gets_copies(self):
        done = self.load(problem("return x.mul_(2)"))
        self.assertEqual(done[1], 1 | 2)
        self.run_once()
        before = self.judge.tensor("x", 1).clone()
        self.judge.evaluate(1, 0)
        self.assertTrue(torch.equal(self.judge.tensor("x", 1), before))
        self.assertTrue(torch.equal(self.judge.tensor("out", 1), 2 * before))

    def test_non_contiguous_and_empty_and_0_dim_tensors_pass(self):
        self.load(problem("return x + 1, e, z * 2", arguments="self, x, e, z",
                          inputs="[torch.randn(3, 2).t(), torch.randn(0, 3), torch.randn(())]"))
        self.run_once()
        self.assertTrue(torch.equal(self.judge.tensor("out", 1), self.judge.tensor("x", 1) + 1))
        self.assertTrue(torch.equal(self.judge.tensor("out2", 1), self.judge.tensor("z", 1) * 2))

    def test_a_brief_load_describes_the_same_without_float64(self):
        full = self.load(LINEAR)
        rows = self.judge.signature()
        brief = self.load(LINEAR, brief=True)
        self.assertEqual(self.judge.signature(), rows)
        self.assertEqual((full[1], brief[1]), (2, 0))

    def test_factories_inside_forward_follow_float64(self):
        self.assertEqual(self.load(problem("return x @ torch.ones(6, 2)"))[1], 2)
        self.run_once()

    def test_a_hard_coded_dtype_is_reported_as_without_float64(self):
        self.assertEqual(self.load(problem("return x.float() * 2"))[1], 0)
        self.judge.lay_out(1)
        self.judge.draw(1)
        with self.assertRaises(Refused) as caught:
            self.judge.evaluate(0, 1)
        self.assertEqual(caught.exception.number, failure.FLOAT64_UNSUPPORTED)
        self.judge.evaluate(0, 0)

    def test_a_draw_on_which_the_reference_throws_is_meaningless(self):
        self.load(problem("""if x.abs().max() > 100: raise ValueError('too large')
        return x"""))
        self.judge.lay_out(1)
        self.assertEqual(self.judge.draw(1, 4), 1)
        with self.assertRaises(Refused) as caught:
            self.judge.evaluate(0, 0)
        self.assertEqual(caught.exception.number, failure.DRAW_MEANINGLESS)
        self.assertIn("too large", self.judge.message())

    def test_lazy_modules_are_materialised(self):
        self.load(problem("return self.layer(x)", init="self.layer = nn.LazyLinear(3)"))
        self.assertIn("parameter layer_weight float32[3, 6]", self.judge.signature())
        self.run_once()


class Refuses(ReferenceTest):
    def test_a_file_that_is_not_python(self):
        self.refused("def f(:\n", failure.PROBLEM_LOAD, "problem.py line 1", "not valid Python")
        self.refused(b"\x7fELF\0\0\0", failure.PROBLEM_LOAD, "not Python")
        self.refused(b"x = '\xff\xfe'\n", failure.PROBLEM_LOAD, "problem.py")

    def test_a_missing_model_or_get_inputs(self):
        self.refused("", failure.PROBLEM_LOAD, "no Model", "no get_inputs")
        self.refused("import torch\nclass Model(torch.nn.Module): pass\n", failure.PROBLEM_LOAD, "no get_inputs")
        self.refused("class Model: pass\ndef get_inputs(): return []\n", failure.PROBLEM_LOAD, "nn.Module")

    def test_an_exception_while_loading_names_its_line(self):
        self.refused("import torch\nimport no_such_package\n", failure.PROBLEM_LOAD, "line 2", "no_such_package")
        self.refused("import sys\nsys.exit(0)\n", failure.PROBLEM_LOAD, "line 2", "sys.exit(0)")
        self.refused(problem("return x", init="raise ValueError('no weights')"), failure.PROBLEM_LOAD,
                     "no weights", "line 7")

    def test_get_inputs_that_throws_or_returns_what_cannot_be_passed(self):
        self.refused(problem("return x", inputs="1/0"), failure.PROBLEM_INPUTS, "get_inputs() fails", "ZeroDivision")
        self.refused(problem("return x", inputs="torch.ones(3)"), failure.PROBLEM_INPUTS, "must return a list")
        self.refused(problem("return x", init_inputs="1/0"), failure.PROBLEM_INPUTS, "get_init_inputs()")
        self.refused(problem("return x", inputs="[torch.ones(2).to(torch.complex64)]"), failure.PROBLEM_INPUTS,
                     "input x", "complex64")
        self.refused(problem("return x", inputs="[torch.ones([1] * 9)]"), failure.PROBLEM_INPUTS, "9 dimensions")
        self.refused(problem("return torch.ones(2)", inputs="[2**70]"), failure.PROBLEM_INPUTS, "64 bits")

    def test_get_inputs_that_changes_shape(self):
        self.load(problem("return x.sum()", inputs="[torch.randn(next(sizes))]",
                          extra="import itertools\nsizes = itertools.count(2)"))
        self.judge.lay_out(1)
        with self.assertRaises(Refused) as caught:
            self.judge.draw(1)
        self.assertEqual(caught.exception.number, failure.PROBLEM_INPUTS)
        self.assertIn("call to call", self.judge.message())

    def test_forward_that_throws(self):
        self.refused(problem("return x @ x"), failure.PROBLEM_FORWARD, "problem.py line 9", "4x6")
        self.refused(problem("return x", inputs="[]"), failure.PROBLEM_FORWARD, "missing")

    def test_a_reference_that_gives_nan(self):
        self.refused(problem("return x, torch.log(-x.abs() - 1)"), failure.PROBLEM_FORWARD,
                     "the reference itself gives NaN on its own inputs", "out1")

    def test_outputs_that_cannot_be_judged(self):
        self.refused(problem("return 'text'"), failure.PROBLEM_OUTPUT, "str")
        self.refused(problem("return None"), failure.PROBLEM_OUTPUT, "nothing")
        self.refused(problem("return torch.complex(x, x)"), failure.PROBLEM_OUTPUT, "complex64")
        self.refused(problem("return x.to_sparse()"), failure.PROBLEM_OUTPUT, "sparse")
        self.refused(problem("return torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)"), failure.PROBLEM_OUTPUT,
                     "quantised")
        self.refused(problem("return [x, object()]"), failure.PROBLEM_OUTPUT, "object")

    def test_random_and_stateful_forwards(self):
        self.refused(problem("return self.drop(x)", init="self.drop = nn.Dropout(0.5)"), failure.PROBLEM_RANDOM,
                     "drop drops values at random")
        self.refused(problem("return x + torch.rand(6)"), failure.PROBLEM_RANDOM, "random")
        self.refused(problem("self.calls += 1\n        return x + self.calls", init="self.calls = 0"),
                     failure.PROBLEM_RANDOM, "earlier calls")
        self.refused(problem("self.total += 1\n        return x + self.total",
                             init="self.register_buffer('total', torch.zeros(()))"), failure.PROBLEM_RANDOM)

    def test_a_dropout_that_is_off_is_not_random(self):
        self.load(problem("return self.drop(x)", init="self.drop = nn.Dropout(0.5).eval()"))
        self.load(problem("return self.drop(x)", init="self.drop = nn.Dropout(0.0)"))

    def test_parameters_of_unsupported_type(self):
        self.refused(problem("return x", init="self.p = nn.Parameter(torch.ones(2, dtype=torch.complex64))"),
                     failure.PROBLEM_LOAD, "parameter p", "complex64")

    def test_requests_before_their_time(self):
        with self.assertRaises(Refused) as caught:
            fresh = Judge()
            self.addCleanup(fresh.close)
            fresh.draw(1)
        self.assertEqual(caught.exception.number, failure.ENVIRONMENT)

    def test_a_host_that_failed_serves_the_next_problem(self):
        self.refused("", failure.PROBLEM_LOAD)
        self.load(SOFTMAX)
        self.run_once()


class Baseline(unittest.TestCase):
    def test_compiled_works_or_says_that_this_pytorch_lacks_it(self):
        judge = Judge(settings={"baseline": "compiled"})
        self.addCleanup(judge.close)
        if hasattr(torch, "compile"):
            judge.load(SOFTMAX)
            judge.lay_out(1)
            judge.draw(1)
            judge.enter_blocks()
            judge.run_block([0])
            judge.leave_blocks()
            self.assertTrue(torch.allclose(judge.tensor("out"), torch.softmax(judge.tensor("x"), 1), atol=1e-6))
        else:
            with self.assertRaises(Refused) as caught:
                judge.load(SOFTMAX)
            self.assertEqual(caught.exception.number, failure.ENVIRONMENT)
            self.assertIn("torch.compile", judge.message())


if __name__ == "__main__":
    unittest.main()
