"""Tests of modules by slot: each works on its slot's weights, and on nothing of another's."""

import functools
import os
import sys
import unittest

import torch
from torch import nn

SUPPORT = os.environ["ASSAY_SUPPORT"]
sys.path.insert(0, os.path.join(SUPPORT, "python"))

from assay_host import copies  # noqa: E402

SLOTS = 3


def first_of(module):
    """Returns the first element of what a module makes of ones."""
    return module(torch.ones(1, 4))[0, 0].item()


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4, bias=False)
        self.second = nn.Linear(4, 4, bias=False)
        self.second.weight = self.first.weight
        self.layers = [self.first, self.second]
        self.scale = 2.0
        self.seen = None

    def forward(self, x):
        self.seen = float(x.sum())
        return self.layers[1](self.layers[0](x)) * self.scale


class Bound(nn.Module):
    """Keeps bound methods and partial functions of its own parts."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.apply_layer = self.layer.forward
        self.multiply = functools.partial(nn.functional.linear, weight=self.layer.weight)

    def forward(self, x):
        return self.apply_layer(x) + self.multiply(x)


class Closes(nn.Module):
    """A closure holds the original's weights: only constructing it again helps."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4, 4))
        self.buffered = nn.BatchNorm1d(4)
        self.call = lambda x: x @ self.weight

    def forward(self, x):
        return self.call(x)


class Copies(unittest.TestCase):
    def make(self, construct):
        """Returns modules by slot, and the views of each slot's tensors by their names."""
        torch.manual_seed(1)
        model = construct().eval()
        torch.set_grad_enabled(False)

        def tensors_of(module):
            return list(module.state_dict(keep_vars=True).values())

        names = list(model.state_dict())
        views = [
            [torch.full_like(t.detach(), slot + 1) for t in tensors_of(model)]
            for slot in range(SLOTS)
        ]
        self.constructed = 0

        def again():
            self.constructed += 1
            made = construct().eval()
            return made, tensors_of(made)

        made = copies.Copies(model, tensors_of(model), lambda slot: views[slot], again)
        return made.modules(SLOTS), [dict(zip(names, of_slot)) for of_slot in views]

    def test_each_works_on_the_weights_of_its_slot(self):
        modules, views = self.make(lambda: nn.Sequential(nn.Linear(4, 2), nn.BatchNorm1d(2)))
        x = torch.randn(3, 4)
        for module, own in zip(modules, views):
            self.assertEqual(module[0].weight.data_ptr(), own["0.weight"].data_ptr())
            self.assertEqual(module[1].running_var.data_ptr(), own["1.running_var"].data_ptr())
            before = module(x)
            own["0.weight"] *= 2
            self.assertFalse(torch.equal(before, module(x)))
        self.assertEqual(self.constructed, 0)

    def test_ties_and_lists_of_submodules_are_kept(self):
        modules, _ = self.make(Tied)
        for slot, module in enumerate(modules):
            self.assertIs(module.first.weight, module.second.weight)
            self.assertIs(module.layers[0], module.first)
            self.assertEqual(first_of(module), 32.0 * (slot + 1) ** 2)
        self.assertIsNone(self.make(Tied)[0][1].seen)
        self.assertEqual(self.constructed, 0)

    def test_bound_methods_are_bound_to_the_copy(self):
        modules, _ = self.make(Bound)
        for slot, module in enumerate(modules):
            self.assertEqual(first_of(module), 9.0 * (slot + 1))
        self.assertEqual(self.constructed, 0)

    def test_recurrent_layers_find_their_weights(self):
        modules, views = self.make(lambda: nn.LSTM(4, 4))
        x = torch.randn(2, 1, 4)
        first, second = modules[0](x)[0], modules[1](x)[0]
        self.assertFalse(torch.equal(first, second))
        for name in views[1]:
            views[1][name].copy_(views[0][name])
        self.assertTrue(torch.equal(first, modules[1](x)[0]))

    def test_a_module_whose_closures_hold_it_is_constructed_again(self):
        modules, _ = self.make(Closes)
        self.assertEqual(self.constructed, SLOTS)
        for slot, module in enumerate(modules):
            self.assertEqual(first_of(module), 4.0 * (slot + 1))

    def test_a_view_of_a_parameter_is_no_attribute_to_share(self):
        class Views(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 4)
                self.transposed = self.layer.weight.detach().t()

            def forward(self, x):
                return x @ self.transposed

        self.make(Views)
        self.assertEqual(self.constructed, SLOTS)

    def test_without_weights_one_module_serves_all_slots(self):
        modules, _ = self.make(lambda: nn.Softmax(1))
        self.assertTrue(all(module is modules[0] for module in modules))


class Places(unittest.TestCase):
    def test_tensors_of_the_views_type_lie_in_slots_but_those_that_forward_changes(self):
        tensors = [torch.zeros(2), torch.zeros(2, device="meta"), torch.zeros(2), torch.zeros(2)]
        views = [torch.zeros(2), torch.zeros(2), torch.zeros(2).double(), torch.zeros(2)]
        found = copies.places(tensors, ["a", "b", "c", "counter"], views, ["counter"])
        self.assertEqual(found, [0])


if __name__ == "__main__":
    unittest.main()
