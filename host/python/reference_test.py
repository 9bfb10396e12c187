"""Tests the reference host as the judge sees it: loading, describing, evaluating."""

import json
import pickle
import unittest
from unittest import mock

from fake_judge import Judge, Refused, failure, torch, wire
from judge_case import JudgeCase
from sample_problems import LINEAR, SOFTMAX, problem

from assay_host import compiled, draws  # noqa: E402


class CompiledBaselines(unittest.TestCase):
    def test_each_is_a_mode_of_torch_compiles_and_is_compiled_before_it_is_timed(self):
        asked, calls = [], []

        def compile_model(model, mode=None):
            asked.append(mode)
            return model

        with mock.patch.object(torch, "compile", compile_model, create=True):
            for baseline in compiled.MODES:
                made, call = compiled.Compiled(baseline, copied=False), calls.append
                for _ in range(2):
                    made.made(call, lambda: ("inputs",))
        self.assertEqual(asked, [None, "reduce-overhead", "max-autotune"])
        self.assertEqual(calls, ["inputs"] * 9)

    # Graphs that were recorded around another slot's weights made a baseline fifty times slower,
    # and whatever was judged beside it faster.
    def test_graphs_around_one_copy_of_the_weights_are_no_baseline_of_calls_with_their_own(self):
        with self.assertRaises(failure.Failure) as caught:
            compiled.Compiled("compiled-reduce-overhead", copied=True)
        self.assertIn("use --baseline compiled", caught.exception.message)
        asked = []
        with mock.patch.object(
            torch, "compile", lambda model, mode=None: asked.append(mode) or model, create=True
        ):
            compiled.Compiled("compiled-max-autotune", copied=True).made(len, lambda: ("",))
        self.assertEqual(asked, ["max-autotune-no-cudagraphs"])


class ReferenceTest(JudgeCase):
    def load(self, source, **keywords):
        return self.judge.load(source, **keywords)

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
        self.assertEqual(
            self.judge.signature(), ["input x float32[16, 32]", "output out float32[16, 32]"]
        )
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

    def test_a_nudged_draw_is_the_same_but_for_its_last_bits_and_has_a_truth_of_its_own(self):
        self.load(SOFTMAX)
        self.judge.lay_out(3)
        for slot, nudge in enumerate([0, 1, 2]):
            self.judge.draw(5, 0, slot, nudge, 18)
            self.judge.evaluate(slot, 1)
        x = self.judge.tensor("x", 0).double()
        for slot in (1, 2):
            nudged = self.judge.tensor("x", slot).double()
            shares = ((nudged - x) / x).abs()
            self.assertLess(shares.max().item(), 2.0**-17.9)
            self.assertGreater(shares.max().item(), 2.0**-18.5)
            truth = self.judge.oracle("out", slot)
            self.assertLess((truth - torch.softmax(nudged, 1)).abs().max().item(), 1e-15)
        self.assertFalse(torch.equal(self.judge.tensor("x", 1), self.judge.tensor("x", 2)))

    def test_many_slots_are_filled_as_one_by_one(self):
        self.load(SOFTMAX)
        self.judge.lay_out(7)
        self.judge.request(wire.STORE_WEIGHTS, 0)
        self.judge.fill(2**63 - 2, 1, 3)  # seeds go round
        for slot, seed in ((4, 2**63 - 2), (5, 2**63 - 1), (6, 0)):
            self.judge.draw(seed, 0, slot)
            self.judge.evaluate(slot, 0)
            for name in ("x", "out"):
                filled = self.judge.tensor(name, slot - 3)
                self.assertTrue(torch.equal(filled, self.judge.tensor(name, slot)), (name, slot))
        self.assertEqual(self.judge.tensor("x", 0).abs().max().item(), 0)

    def test_weights_are_stored_and_loaded_and_depend_on_the_weights_seed_alone(self):
        self.load(LINEAR)
        self.assertEqual(
            self.judge.signature(),
            [
                "input x float32[3, 5]",
                "parameter layer_weight float32[7, 5]",
                "parameter layer_bias float32[7]",
                "output out float32[3, 7]",
            ],
        )
        self.run_once()
        weight, bias = self.judge.tensor("layer_weight"), self.judge.tensor("layer_bias")
        torch.manual_seed(11)
        expected = torch.nn.Linear(5, 7)
        self.assertTrue(torch.equal(weight, expected.weight))
        x = self.judge.tensor("x", 1)
        self.assertTrue(
            torch.allclose(self.judge.tensor("out", 1), torch.relu(x @ weight.T + bias), atol=1e-6)
        )
        weight.fill_(2.0)
        bias.fill_(1.0)
        self.judge.request(wire.STORE_WEIGHTS, 1)
        self.judge.evaluate(1, 0)
        self.judge.evaluate(1, 1)
        self.assertTrue(
            torch.allclose(self.judge.tensor("out", 1)[:, 0], 2 * x.sum(1) + 1, atol=1e-5)
        )
        self.assertTrue(
            torch.allclose(self.judge.oracle("out", 1)[:, 0], 2 * x.double().sum(1) + 1, atol=1e-12)
        )

    def test_parameters_that_are_all_equal_get_values_of_their_own(self):
        """A fresh layer norm's ones and zeros would let a kernel pass that leaves them out."""
        source = problem("return self.norm(x)", init="self.norm = nn.LayerNorm(6)")
        self.load(source)
        self.run_once()
        weight, bias = self.judge.tensor("norm_weight"), self.judge.tensor("norm_bias")
        self.assertTrue(bool(((weight >= 0.5) & (weight <= 1.5)).all()))
        self.assertTrue(bool((bias.abs() <= 0.25).all()))
        self.assertEqual((len(set(weight.tolist())), len(set(bias.tolist()))), (6, 6))
        x = self.judge.tensor("x", 1)
        expected = torch.nn.functional.layer_norm(x, (6,), weight, bias)
        self.assertTrue(torch.allclose(self.judge.tensor("out", 1), expected, atol=1e-5))
        self.load(source, settings={"weights": "constructed"})
        self.run_once()
        self.assertTrue(torch.equal(self.judge.tensor("norm_weight"), torch.ones(6)))

    def test_changes_of_the_region_reach_the_reference_in_both_precisions(self):
        self.load(LINEAR)
        self.assertEqual(self.judge.varying(), ["layer_weight", "layer_bias"])
        self.run_once()
        weight, bias = self.judge.tensor("layer_weight"), self.judge.tensor("layer_bias")
        weight[0, 0] *= 2
        self.judge.request(wire.STORE_WEIGHTS, 2)
        self.judge.evaluate(1, 0)
        self.judge.evaluate(1, 1)
        x = self.judge.tensor("x", 1).double()
        expected = torch.relu(x @ weight.double().T + bias.double())
        self.assertLess((self.judge.tensor("out", 1) - expected).abs().max().item(), 1e-5)
        self.assertLess((self.judge.oracle("out", 1) - expected).abs().max().item(), 1e-12)

    def test_buffers_and_what_forward_changes_do_not_vary(self):
        source = problem(
            "self.count.data += 1; return self.norm(x) + 0 * self.count",
            init="self.norm = nn.BatchNorm1d(6); self.count = nn.Parameter(torch.rand(6))",
        )
        self.load(source)
        self.assertEqual(self.judge.varying(), ["norm_weight", "norm_bias"])
        self.load(source, settings={"weights": "constant"})
        self.assertEqual(self.judge.varying(), [])

    def test_the_construction_record_holds_what_a_candidate_needs(self):
        self.load(LINEAR)
        record = pickle.loads(self.judge.record)
        self.assertEqual(pickle.loads(record["init_inputs"]), [5, 7])
        self.assertEqual(record["parameters"], ["layer.weight", "layer.bias"])

    def test_the_numbers_among_the_constants_stand_behind_the_record(self):
        lines = "GROUPS = 4\nscale = -0.5\nFLAG = True\nNAME = 'x'\nn = 1\nN = 2\nLONG = 2**70\n"
        self.load(lines + LINEAR, settings={"set": {"GROUPS": "8"}})
        found = json.loads(self.judge.behind_record.split(b"\0")[0])
        self.assertEqual(found, {"ASSAY_GROUPS": "8", "ASSAY_SCALE": "-0.5", "ASSAY_FLAG": "1"})

    def test_init_inputs_that_cannot_be_pickled_leave_no_record(self):
        done = self.load(
            problem("return self.f(x)", init="self.f = f", init_inputs="[lambda x: x]").replace(
                "__init__(self)", "__init__(self, f)"
            )
        )
        self.assertEqual(done[3], 0)

    def test_batch_norm_uses_batch_statistics_and_its_buffers_are_restored(self):
        done = self.load(
            problem("return self.norm(x)", init="self.norm = nn.BatchNorm1d(6)"),
            settings={"weights": "constructed"},
        )
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
        self.assertEqual(
            self.judge.signature()[1:],
            [
                "output out float32[]",
                "output out1 int64[4]",
                "output out2 bool[4, 6]",
                "output out3 int64[]",
                "output out4 float64[]",
            ],
        )
        self.run_once()
        x = self.judge.tensor("x", 1)
        self.assertTrue(torch.equal(self.judge.tensor("out", 1), x.sum()))
        self.assertTrue(torch.equal(self.judge.tensor("out1", 1), x.argmax(1)))
        self.assertTrue(torch.equal(self.judge.tensor("out2", 1), x > 0))
        self.assertEqual(self.judge.tensor("out3", 1).item(), 2)
        self.assertEqual(self.judge.oracle("out4", 1).item(), 2.5)

    def test_scalars_nested_inputs_and_constants_reach_forward(self):
        self.load(
            problem(
                "extra = (1 if flag else 0) + len(mode) + (rest is None)\n"
                "        return x * n + alpha + sum(parts['a']) + extra",
                arguments="self, x, n, alpha, flag, parts, mode, rest",
                inputs="[torch.randn(3), 4, 0.5, True, "
                "{'a': [torch.ones(3), torch.randn(3)]}, 'ab', None]",
            )
        )
        self.assertEqual(
            self.judge.signature(),
            [
                "input x float32[3]",
                "input n int",
                "input alpha float",
                "input flag bool",
                "input parts_a_0 float32[3]",
                "input parts_a_1 float32[3]",
                "output out float32[3]",
            ],
        )
        self.run_once()
        self.assertEqual(
            (
                self.judge.scalar("n", 1),
                self.judge.scalar("alpha", 1),
                self.judge.scalar("flag", 1),
            ),
            (4, 0.5, True),
        )
        x, a, b = (self.judge.tensor(name, 1) for name in ("x", "parts_a_0", "parts_a_1"))
        self.assertTrue(
            torch.allclose(self.judge.tensor("out", 1), x * 4 + 0.5 + a + b + 1 + 2 + 1)
        )

    def test_names_become_unique_c_identifiers(self):
        self.load(
            problem(
                "return int + out + self.w[0] + namespace",
                arguments="self, int, out, namespace",
                inputs="[torch.randn(2), torch.randn(2), 1.0]",
                init="self.w = nn.ParameterList([nn.Parameter(torch.ones(2))])",
            )
        )
        names = [row.split()[1] for row in self.judge.signature()]
        self.assertEqual(names, ["int_", "out", "namespace_", "w_0", "out_2"])

    def test_bfloat16_and_integer_inputs_keep_their_dtypes(self):
        self.load(
            problem(
                "return x + 1, i * 2, b",
                arguments="self, x, i, b",
                inputs="[torch.randn(5).bfloat16(), torch.arange(5, dtype=torch.int8), "
                "torch.tensor([True, False])]",
            )
        )
        self.run_once()
        self.assertEqual(
            self.judge.signature()[3:],
            ["output out bfloat16[5]", "output out1 int8[5]", "output out2 bool[2]"],
        )
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

    def test_non_contiguous_and_empty_and_0_dim_tensors_pass(self):
        self.load(
            problem(
                "return x + 1, e, z * 2",
                arguments="self, x, e, z",
                inputs="[torch.randn(3, 2).t(), torch.randn(0, 3), torch.randn(())]",
            )
        )
        self.run_once()
        self.assertTrue(torch.equal(self.judge.tensor("out", 1), self.judge.tensor("x", 1).t() + 1))
        self.assertTrue(torch.equal(self.judge.tensor("out2", 1), self.judge.tensor("z", 1) * 2))

    def test_inputs_are_laid_out_in_every_call_as_slots_are(self):
        self.load(problem("return x.view(-1)", inputs="[torch.randn(4, 1).expand(4, 6)]"))
        self.run_once()

    def test_random_signs_are_tried_natively_where_there_is_no_float64(self):
        for forward, changed in (("x.float()", 1), ("x.float().sqrt()", 0)):
            self.load(problem(f"return {forward}", inputs="[torch.rand(64)]"))
            self.judge.lay_out(1)
            self.assertEqual(self.judge.draw(1, draws.SIGNS), changed)

    def test_a_brief_load_describes_the_same_without_float64(self):
        full = self.load(LINEAR)
        rows = self.judge.signature()
        brief = self.load(LINEAR, brief=True)
        self.assertEqual(self.judge.signature(), rows)
        self.assertEqual((full[1], brief[1]), (2, 0))

    def test_factories_inside_forward_follow_float64(self):
        self.assertEqual(self.load(problem("return x @ torch.ones(6, 2)"))[1], 2)
        self.run_once()

    # One convolution of 34 ms took 2.8 s in float64, fourteen times a judgement, while everybody
    # waited for the device.
    def test_float64_does_without_cudnn_except_for_recurrent_layers(self):
        for layer, flag in (("nn.Linear(6, 6)", 0.0), ("nn.LSTM(6, 6)", 1.0)):
            self.load(
                problem(
                    "return self.layer(x)[0].sum() * 0 + x * 0 + float(self.uses())",
                    init=f"self.layer = {layer}; self.uses = lambda: torch.backends.cudnn.enabled",
                )
            )
            self.run_once()
            self.assertEqual(self.judge.tensor("out", 1).unique().tolist(), [1.0], layer)
            self.assertEqual(self.judge.oracle("out", 1).unique().tolist(), [flag], layer)
            self.assertTrue(torch.backends.cudnn.enabled)

    # Of a convolution two kinds of values were left out: without cuDNN it took 10 GB in float64,
    # and a worker's eighth of the device had 6.
    def test_float64_that_lacks_memory_without_cudnn_runs_with_it(self):
        lacks = "raise torch.cuda.OutOfMemoryError('CUDA out of memory')"
        done = self.load(
            problem(
                "return self.looks(x)",
                init="self.looks = looks",
                extra="def looks(x):\n"
                f"    if not torch.backends.cudnn.enabled: {lacks}\n"
                "    return x * 2\n",
            )
        )
        self.assertEqual(done[1], 2)
        self.run_once()

    def test_closures_plain_tensors_and_buffers_follow_float64(self):
        done = self.load(
            problem(
                "return self.call(x) + self.plain @ self.shift + self.norm(x)",
                init="self.layer = nn.Linear(6, 6); self.call = lambda x: self.layer(x); "
                "self.plain = torch.ones(6, 6); self.norm = nn.BatchNorm1d(6); "
                "self.register_buffer('shift', torch.full((6,), 0.1), persistent=False)",
            ),
            settings={"weights": "constructed"},
        )
        self.assertEqual(done[1], 2 | 4)
        self.run_once()
        x = self.judge.tensor("x", 1).double()
        norm = (x - x.mean(0)) / torch.sqrt(x.var(0, unbiased=False) + 1e-5)
        shift = 6 * torch.full((6,), 0.1).double()
        weight, bias = self.judge.tensor("layer_weight"), self.judge.tensor("layer_bias")
        expected = x @ weight.double().T + bias.double() + shift + norm
        self.assertLess((self.judge.oracle("out", 1) - expected).abs().max().item(), 1e-12)
        native = self.judge.tensor("out", 1).clone()
        self.judge.evaluate(1, 0)  # and back in the native dtype
        self.assertTrue(torch.equal(self.judge.tensor("out", 1), native))
        self.judge.request(wire.STORE_WEIGHTS, 0)
        self.assertTrue(torch.equal(self.judge.tensor("norm_running_var"), torch.ones(6)))

    def test_float32_that_forward_asks_for_is_float64_there(self):
        for asked in ("x.float() * 2", "x.to(torch.float32).mul(2)",
                      "torch.add(x, torch.zeros(1, dtype=torch.float32)) * 2"):  # fmt: skip
            self.assertEqual(self.load(problem(f"return {asked}"))[1], 2)
            self.judge.lay_out(1)
            self.judge.draw(1)
            self.judge.evaluate(0, 1)
            expected = self.judge.tensor("x").double() * 2
            self.assertTrue(torch.equal(self.judge.oracle("out", 0), expected))

    def test_noise_under_a_seed_of_its_own_is_that_of_float32_there(self):
        for noise in ("torch.randn(x.shape)", "torch.rand_like(x)", "x.clone().normal_()"):
            self.assertEqual(self.load(problem(f"torch.manual_seed(3); return x + {noise}"))[1], 2)
            self.judge.lay_out(1)
            self.judge.draw(1)
            self.judge.evaluate(0, 0)
            self.judge.evaluate(0, 1)
            error = self.judge.oracle("out", 0) - self.judge.tensor("out").double()
            self.assertLess(error.abs().max().item(), 1e-5)

    def test_sparse_tensors_within_forward_are_as_others(self):
        for made in ("x.to_sparse()", "x.to_sparse_csr()"):
            self.assertEqual(self.load(problem(f"return torch.mm({made}, x.t())"))[1], 2)
            self.judge.lay_out(1)
            self.judge.draw(1)
            self.judge.evaluate(0, 0)
            x = self.judge.tensor("x")
            self.assertLess((self.judge.tensor("out") - x @ x.t()).abs().max().item(), 1e-5)

    def test_gradients_that_forward_leaves_do_not_keep_it_from_float64(self):
        self.assertEqual(
            self.load(
                problem(
                    "torch.set_grad_enabled(True)\n"
                    "        self.layer.zero_grad(set_to_none=False)\n"
                    "        self.layer(x).square().sum().backward()\n"
                    "        return self.layer.weight.grad.clone()",
                    init="self.layer = nn.Linear(6, 2)",
                )
            )[1] & 2,
            2,
        )

    def test_a_hard_coded_dtype_is_reported_as_without_float64(self):
        source = "return torch.from_numpy(x.numpy().astype('float32')) * 2"
        self.assertEqual(self.load(problem(source))[1], 0)
        self.judge.lay_out(1)
        self.judge.draw(1)
        with self.assertRaises(Refused) as caught:
            self.judge.evaluate(0, 1)
        self.assertEqual(caught.exception.number, failure.FLOAT64_UNSUPPORTED)
        self.judge.evaluate(0, 0)

    def test_a_draw_on_which_the_reference_throws_is_meaningless(self):
        self.load(
            problem(
                """if x.abs().max() > 100: raise ValueError('too large')
        return x"""
            )
        )
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
            self.assertTrue(
                torch.allclose(judge.tensor("out"), torch.softmax(judge.tensor("x"), 1), atol=1e-6)
            )
        else:
            with self.assertRaises(Refused) as caught:
                judge.load(SOFTMAX)
            self.assertEqual(caught.exception.number, failure.ENVIRONMENT)
            self.assertIn("torch.compile", judge.message())


if __name__ == "__main__":
    unittest.main()
