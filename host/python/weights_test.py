"""Tests how a candidate's weights are matched with the reference's."""

import os
import sys
import types
import unittest
from unittest import mock

import torch
from torch import nn

SUPPORT = os.environ["ASSAY_SUPPORT"]
sys.path.insert(0, os.path.join(SUPPORT, "python"))

from assay_host import drawn_weights, failure, values, weights, wire  # noqa: E402


def tensors(**shapes):
    return {name: torch.randn(shape) for name, shape in shapes.items()}


def match(state, reference):
    return weights.match(state, list(reference), list(reference.values()))


class Views(unittest.TestCase):
    def test_only_what_is_asked_for_is_made(self):
        """ResNet101 has 626 weights. Its hosts made 626 * 626 views a slot, which took 2.3 s."""
        arguments = [types.SimpleNamespace(role=wire.INPUT, offset=0)]
        arguments += [types.SimpleNamespace(role=wire.PARAMETER, offset=o) for o in (0, 64, 128)]
        plan = types.SimpleNamespace(
            arguments=arguments, argument_count=len(arguments), weights_stride=1000
        )
        with mock.patch.object(values, "spec_view", lambda mapping, spec, at: at):
            self.assertEqual(values.parameter_views(plan, None, 2), [2000, 2064, 2128])
            self.assertEqual(values.parameter_views(plan, None, 1, [2, 0]), [1128, 1000])


class Match(unittest.TestCase):
    def test_names_decide_in_any_order_beside_others(self):
        reference = tensors(a=(2, 3), b=(2, 3), c=(4,))
        found = match(tensors(b=(2, 3), more=(1,), c=(4,), a=(2, 3)), reference)
        self.assertEqual(found, (weights.BY_NAME, ["a", "b", "c"], 1))
        self.assertEqual(found.missing(), [])

    def test_what_a_candidate_lacks_stays_open(self):
        reference = tensors(a=(2, 3), b=(2, 3), c=(4,))
        state = tensors(a=(2, 3), b=(3, 2), other=(4,))
        found = match(state, reference)
        self.assertEqual(found, (weights.BY_NAME, ["a", None, None], 2))
        self.assertEqual(found.missing(), [1, 2])
        self.assertIs(found.tensors(state)[0], state["a"])
        self.assertEqual(found.tensors(state)[1:], [None, None])

    def test_the_order_counts_only_if_no_name_agrees(self):
        reference = tensors(a=(2, 3), b=(2, 3))
        self.assertEqual(
            match(tensors(x=(2, 3), y=(2, 3)), reference), (weights.BY_ORDER, ["x", "y"], 0)
        )
        self.assertEqual(
            match(tensors(x=(2, 3), a=(2, 3)), reference), (weights.BY_NAME, ["a", None], 1)
        )

    def test_shapes_count_only_if_none_is_there_twice(self):
        reference = tensors(a=(2, 3), b=(4,))
        self.assertEqual(
            match(tensors(y=(4,), z=(5,), x=(2, 3)), reference), (weights.BY_SHAPE, ["x", "y"], 1)
        )
        twice = match(tensors(y=(4,), z=(4,), x=(2, 3)), reference)
        self.assertEqual(twice, (weights.BY_SEED, [None, None], 3))

    def test_a_square_matrix_that_is_stored_transposed_is_left_alone(self):
        reference = tensors(a=(3, 3), b=(4,))
        state = {"a": nn.Parameter(reference["a"].t().clone()), "b": torch.randn(4)}
        self.assertEqual(match(state, reference), (weights.BY_NAME, [None, "b"], 1))
        state["a"] = nn.Parameter(torch.randn(3, 3))
        self.assertEqual(match(state, reference).names, ["a", "b"])
        symmetric = {"a": torch.eye(3)}
        self.assertEqual(match({"a": torch.eye(3)}, symmetric).names, ["a"])

    def test_a_module_without_weights(self):
        self.assertEqual(match({}, tensors(a=(2,))), (weights.BY_SEED, [None], 0))
        self.assertEqual(match(tensors(a=(2,)), {}), (weights.NO_WEIGHTS, [], 1))


def scale_of(value):
    """Returns a number as float32 holds it."""
    return torch.tensor(value).item()


class RandomiseConstant(unittest.TestCase):
    def test_says_which_and_what_they_were(self):
        self.assertEqual(weights.randomise_constant(nn.Linear(3, 4), 1), {})
        norm = nn.LayerNorm(8)
        self.assertEqual(weights.randomise_constant(norm, 1), {"weight": 1, "bias": 0})
        self.assertGreater(norm.weight.std().item(), 0)

    def test_a_faint_branch_gets_weight(self):
        # As in ConvNeXt: a branch scaled by 1e-6 could be left out unseen.
        scale = nn.Module()
        scale.gamma = nn.Parameter(torch.full((64,), -1e-6))
        self.assertEqual(weights.randomise_constant(scale, 1), {"gamma": scale_of(-1e-6)})
        self.assertTrue(bool(((scale.gamma <= -0.125) & (scale.gamma >= -0.375)).all()))


    def test_an_adapter_that_was_hardly_trained_gets_weight(self):
        adapter = nn.Module()
        adapter.up = nn.Parameter(torch.randn(16, 16) * 1e-9)
        constructed = adapter.up.detach().clone()
        drawn = weights.randomise_constant(adapter, 1)
        self.assertTrue(torch.equal(drawn["up"], constructed))
        self.assertTrue(0.125 <= adapter.up.abs().max() <= 0.25)
        self.assertTrue(torch.equal(torch.sign(adapter.up), torch.sign(constructed)))


class Saved(unittest.TestCase):
    def test_a_buffer_that_is_written_with_what_it_holds_is_changed(self):
        # The least value of many relus was zero: it was taken for unchanged, and lay where no
        # candidate could write.
        module = nn.BatchNorm1d(4)
        saved = weights.Saved(module)
        state = weights.every_tensor(module)
        self.assertEqual(saved.changed(state), [])
        module.running_mean.mul_(0.9)
        with torch.no_grad():
            module.bias.clamp_(-1, 1)
        self.assertEqual(saved.changed(weights.every_tensor(module)), ["running_mean"])
        module.running_var.add_(1)
        self.assertEqual(
            saved.changed(weights.every_tensor(module)), ["running_mean", "running_var"]
        )


class SettleDrawn(unittest.TestCase):
    X = torch.tensor([-1.5, 2.0, -0.25])

    def settle(self, forward, **constructed):
        """Returns the tensors after drawing, and those that got their constructed values back."""
        found = {name: torch.tensor(value) for name, value in constructed.items()}
        drawn = dict(constructed)
        for tensor in found.values():
            tensor.mul_(0.75)
        result, kept = drawn_weights.settle(found, drawn, lambda: ([forward(**found)], "more"))
        self.assertEqual(result[1], "more")
        self.assertTrue(torch.equal(result[0][0].nan_to_num(), forward(**found).nan_to_num()))
        return {name: tensor.item() for name, tensor in found.items()}, kept

    def test_an_exponent_alone_stays(self):
        got = self.settle(lambda a, p, q: self.X**p + a * self.X**q, a=2.0, p=3.0, q=1.0)
        self.assertEqual(got, ({"a": 1.5, "p": 3.0, "q": 1.0}, ["p", "q"]))

    def test_what_is_nan_by_design_has_drawn_values(self):
        got = self.settle(lambda a: a * self.X.sqrt(), a=2.0)
        self.assertEqual(got, ({"a": 1.5}, []))

    def test_what_fails_with_a_drawn_value_stays(self):
        def steps(n):
            if n != int(n):
                raise failure.Failure(failure.PROBLEM_FORWARD, "no whole number")
            return self.X * int(n)

        self.assertEqual(self.settle(steps, n=2.0), ({"n": 2.0}, ["n"]))

        def never(n):
            raise failure.Failure(failure.PROBLEM_FORWARD, "always")

        with self.assertRaises(failure.Failure):
            drawn_weights.settle({"n": torch.tensor(1.5)}, {"n": 2.0}, lambda: never(2))


if __name__ == "__main__":
    unittest.main()
