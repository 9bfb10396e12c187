"""Files of KernelBook's form, dicts and single tensors, and files that lack a form."""

import unittest

from fake_judge import torch
from judge_case import JudgeCase
from assay_host import failure, forms

KERNELBOOK = """
import torch, torch.nn as nn
class Helper(nn.Module):
    def forward(self, x):
        return x
class SumAggregator(nn.Module):
    def __init__(self, scale, shift=0.5, *, unused=0):
        super(SumAggregator, self).__init__()
        self.scale, self.shift = scale, shift
        self.helper = Helper()
    def forward(self, neighbour, mask=None):
        return self.helper(torch.sum(neighbour, dim=1) * self.scale + self.shift)
def get_inputs():
    return INPUTS
def get_init_inputs():
    return [[], {'scale': 2.0}]
"""


class FormsTest(JudgeCase):
    def test_a_file_of_kernelbooks_form_is_read(self):
        for inputs in (
            "[torch.rand([4, 3, 2])]",
            "[[torch.rand([4, 3, 2])], {}]",
            "[[], {'neighbour': torch.rand([4, 3, 2])}]",
            "{'neighbour': torch.rand([4, 3, 2])}",
            "torch.rand([4, 3, 2])",
        ):
            self.judge.load(KERNELBOOK.replace("INPUTS", inputs))
            self.assertEqual(
                self.judge.signature(),
                ["input neighbour float32[4, 3, 2]", "output out float32[4, 2]"],
                inputs,
            )
            self.judge.lay_out(1)
            self.judge.draw(1)
            self.judge.evaluate()
            expected = self.judge.tensor("neighbour").sum(1) * 2 + 0.5
            self.assertTrue(torch.equal(self.judge.tensor("out"), expected))

    def test_a_file_of_no_form_is_told_which_one_is_expected(self):
        load = failure.PROBLEM_LOAD
        self.refused(
            "def fn(x, w, bias=None): return x @ w\n",
            load,
            "defines no Model and no get_inputs",
            "`def forward(self, x, w): return fn(x, w)`",
        )
        two = KERNELBOOK.replace("self.helper = Helper()", "").replace("self.helper(", "(")
        self.refused(two.replace("INPUTS", "[]"), load, "Helper, SumAggregator", "judge Model")
        self.refused(
            KERNELBOOK.replace("def get_inputs", "def get_input"), load, "defines no get_inputs"
        )
        self.refused(
            KERNELBOOK.replace("INPUTS", "[torch.rand(4, 3)]").replace(
                "'scale': 2.0", "'scale': 2.0, 'unused': 1"
            ),
            failure.PROBLEM_INPUTS,
            "unused by keyword alone",
        )

    def test_a_gradient_without_autograd_is_told_how_to_be_had(self):
        source = KERNELBOOK.replace("INPUTS", "[torch.rand(4, 3)]").replace(
            "return self.helper(", "torch.sum(neighbour).backward()\n        return ("
        )
        self.refused(source, failure.PROBLEM_FORWARD, "torch.enable_grad()", "docs/problems.md")

    def test_arguments_stay_as_they_are_unless_they_are_plainly_keywords(self):
        def takes_two(parts, options):
            return parts, options

        parts, options = [torch.zeros(1)], {"a": 1}
        self.assertEqual(forms.arguments([parts, options], takes_two, "f"), [parts, options])
        self.assertEqual(forms.arguments(options, lambda x: x, "f"), [options])
        self.assertEqual(forms.arguments({"y": 1, "x": 2}, lambda x, y=3: x, "f"), [2, 1])
        self.assertEqual(forms.arguments([[], {"z": 1}], lambda x=4, y=3, z=2: x, "f"), [4, 3, 1])
        self.assertEqual(forms.arguments([[2], {"x": 1}], lambda *a, **k: a, "f"), [[2], {"x": 1}])
        self.assertEqual(forms.arguments((1, 2), takes_two, "f"), [1, 2])
        with self.assertRaises(failure.Failure):
            forms.arguments("text", takes_two, "f")


if __name__ == "__main__":
    unittest.main()
