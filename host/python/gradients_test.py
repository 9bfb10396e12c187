"""Gradients of a problem's forward as results of one call."""

import unittest

from fake_judge import torch
from assay_host import gradients
from assay_host.failure import Failure


class Linear(torch.nn.Module):
    """As KernelBench writes them: the constructor names its own class."""

    def __init__(self, columns):
        super(Linear, self).__init__()
        self.layer = torch.nn.Linear(columns, 3)
        self.frozen = torch.nn.Parameter(torch.ones(3), requires_grad=False)

    def forward(self, x, scale):
        return self.layer(x) * scale * self.frozen, x.argmax(-1)


def module_of(forward):
    """A problem's globals, with a class of its own."""
    return {
        "Model": type("Model", (Linear,), {"forward": forward}),
        "get_inputs": lambda: [torch.randn(5, 4), 2.0],
        "get_init_inputs": lambda: [4],
    }


class Gradients(unittest.TestCase):
    def test_results_are_those_of_autograd(self):
        module = module_of(Linear.forward)
        gradients.of_problem(module)
        x, scale, given = module["get_inputs"]()
        self.assertEqual(given.shape, (5, 3))
        model = module["Model"](4)
        with torch.no_grad():
            y, largest, of_x, of_weight, of_bias = model(x, scale, given)
        # By hand: y = (x W' + b) 2.
        self.assertTrue(torch.allclose(of_x, 2 * given @ model.layer.weight))
        self.assertTrue(torch.allclose(of_weight, 2 * given.T @ x))
        self.assertTrue(torch.allclose(of_bias, 2 * given.sum(0)))
        self.assertTrue(torch.equal(largest, x.argmax(-1)))
        self.assertFalse(y.requires_grad)
        self.assertIsNone(x.grad)

    def test_what_a_result_does_not_depend_on_has_a_gradient_of_zero(self):
        module = module_of(lambda self, x, unused: x.exp())
        gradients.of_problem(module)
        x, scale, given = module["get_inputs"]()
        _, of_x, *of_parameters = module["Model"](4)(x, scale, given)
        self.assertTrue(torch.allclose(of_x, given * x.exp()))
        self.assertTrue(all((gradient == 0).all() for gradient in of_parameters))
        self.assertEqual(len(of_parameters), 2)

    def test_shapes_are_found_without_changing_random_numbers(self):
        plain, changed = module_of(Linear.forward), module_of(Linear.forward)
        gradients.of_problem(changed)
        torch.manual_seed(3)
        x = plain["get_inputs"]()[0]
        torch.manual_seed(3)
        self.assertTrue(torch.equal(x, changed["get_inputs"]()[0]))

    def test_a_file_without_what_is_needed_is_refused(self):
        with self.assertRaisesRegex(Failure, "class Model"):
            gradients.of_problem({"get_inputs": list})
        with self.assertRaisesRegex(Failure, "no defaults"):
            gradients.of_problem(module_of(lambda self, x, y=1: x))
        module = module_of(lambda self, x, y: x.argmax(-1))
        gradients.of_problem(module)
        with self.assertRaisesRegex(Failure, "no floating-point result"):
            module["get_inputs"]()
        module = module_of(lambda self, x: x)
        gradients.of_problem(module)
        with self.assertRaisesRegex(Failure, "one value for each argument"):
            module["get_inputs"]()

    def test_a_candidate_with_other_results_says_so(self):
        module = {"ModelNew": type("ModelNew", (Linear,), {"forward": lambda self, x: (x, x)})}
        gradients.of_candidate(module)
        with self.assertRaisesRegex(ValueError, "2 floating-point results"):
            module["ModelNew"](4)(torch.randn(2, 4), torch.randn(2, 4))
        gradients.of_candidate({})  # the host says what is missing


if __name__ == "__main__":
    unittest.main()
