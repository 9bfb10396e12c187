"""--set: which constants it changes, with what, and how it says no."""

import unittest

from fake_judge import Refused, failure, wire
from judge_case import JudgeCase

SOURCE = """
import torch, torch.nn as nn
N = 64
WIDTH: int = N * 2
A = B = 3
P, Q = 1, 2
U, V = divmod(N, 10)
S = 4
S += 1
dtype = torch.float64
SHAPE = (2, 3)
N_again = N
class Model(nn.Module):
    def forward(self, x, s, b):
        return x * 2, s, b
def get_inputs():
    return [torch.zeros(N, WIDTH, A, B, dtype=dtype), torch.zeros(SHAPE), torch.zeros(S, P)]
"""


class SettingsTest(JudgeCase):
    def shapes(self, settings, source=SOURCE):
        self.judge.write("problem/problem.py", source)
        self.judge.load(source, settings={"set": settings})
        return [row.split(" ", 2)[2] for row in self.judge.signature() if row.startswith("input")]

    def setting_refused(self, settings, *parts, source=SOURCE):
        with self.assertRaises(Refused) as caught:
            self.shapes(settings, source)
        self.assertEqual(caught.exception.number, failure.PROBLEM_SET)
        for part in parts:
            self.assertIn(part, self.judge.message())

    def test_without_settings_the_file_says_what_it_says(self):
        self.assertEqual(
            self.shapes({}), ["float64[64, 128, 3, 3]", "float32[2, 3]", "float32[5, 1]"]
        )

    def test_a_constant_changes_before_anything_is_derived_from_it(self):
        self.assertEqual(self.shapes({"N": "5"})[0], "float64[5, 10, 3, 3]")

    def test_an_annotated_and_a_chained_assignment_change_alone(self):
        self.assertEqual(self.shapes({"WIDTH": "7", "A": "1"})[0], "float64[64, 7, 1, 3]")
        self.assertEqual(self.shapes({"B": "1"})[0], "float64[64, 128, 3, 1]")

    def test_arithmetic_tuples_and_dtypes_are_values(self):
        self.assertEqual(
            self.shapes({"N": "2 ** 3 - 4 // 2", "SHAPE": "(1, 4)", "dtype": "torch.float32"})[:2],
            ["float32[6, 12, 3, 3]", "float32[1, 4]"],
        )

    def test_an_unknown_name_lists_the_constants_and_the_nearest(self):
        self.setting_refused(
            {"WIDHT": "4"}, "no such constant", "did you mean WIDTH?", "it has N, WIDTH, A, B, P, Q"
        )
        self.setting_refused({"n": "4"}, "did you mean N?")
        self.setting_refused({"zzzzz": "4"}, "it has N, WIDTH")
        self.setting_refused({"N": "4"}, "no constants", source="def get_inputs(): return []")

    def test_one_of_several_names_on_a_line_changes_alone(self):
        """Public problems write `height, width = 64, 64`."""
        self.assertEqual(self.shapes({"P": "3"})[2], "float32[5, 3]")
        self.assertEqual(self.shapes({"Q": "3"})[2], "float32[5, 1]")

    def test_names_that_cannot_be_replaced_are_explained(self):
        self.setting_refused({"U": "4"}, "line 7", "several names")
        self.setting_refused({"S": "4"}, "line 9", "in place")

    def test_values_that_are_no_constants_are_refused(self):
        for value in (
            "many",
            "",
            "1 +",
            "__import__('os')",
            "[x for x in (1,)]",
            "9 ** 9 ** 9",
            "1 << 10 ** 9",
            "f(1)",
            "torch.ones",
            "(" * 1000,
        ):
            self.setting_refused({"N": value}, "--set N=", "Python literal")

    def test_a_changed_constant_reaches_the_estimate_too(self):
        self.judge.write("problem/problem.py", SOURCE)
        self.shapes({"N": "8"})
        self.assertEqual(self.judge.request(wire.ESTIMATE, 0)[0], 8 * (8 * 16 * 9) + 4 * 6 + 4 * 5)


if __name__ == "__main__":
    unittest.main()
