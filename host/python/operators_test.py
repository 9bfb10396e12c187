"""Tests the account of a forward: operations, bytes, live memory."""

import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.environ["ASSAY_SUPPORT"], "python"))

import torch  # noqa: E402
import torch.nn.functional as functional  # noqa: E402

from assay_host import estimate, operators, problem, profile  # noqa: E402
from assay_host.failure import Failure  # noqa: E402

torch.set_grad_enabled(False)


def account_of(forward):
    account = operators.new_account(10)
    with account:
        forward()
    return account


class CountingTest(unittest.TestCase):
    def operations(self, forward):
        return account_of(forward).total("operations")

    def test_products_take_two_operations_a_multiply_add(self):
        a, b, c = torch.ones(3, 5), torch.ones(5, 7), torch.ones(7)
        self.assertEqual(self.operations(lambda: a @ b), 2 * 3 * 5 * 7)
        self.assertEqual(self.operations(lambda: torch.addmm(c, a, b)), 2 * 3 * 5 * 7 + 3 * 7)
        self.assertEqual(self.operations(lambda: functional.linear(a, b.t())), 2 * 3 * 5 * 7)
        many = torch.ones(4, 3, 5)
        self.assertEqual(self.operations(lambda: torch.bmm(many, torch.ones(4, 5, 2))), 240)
        self.assertEqual(self.operations(lambda: torch.mv(a, torch.ones(5))), 30)

    def test_convolutions_meet_each_filter_once_an_output(self):
        image, weight = torch.zeros(2, 6, 9, 9), torch.zeros(8, 3, 3, 3)
        count = self.operations(lambda: functional.conv2d(image, weight, groups=2))
        self.assertEqual(count, 2 * (2 * 8 * 7 * 7) * (3 * 3 * 3))
        weight = torch.zeros(6, 4, 3, 3)  # transposed: (in, out, height, width)
        count = self.operations(lambda: functional.conv_transpose2d(image, weight))
        self.assertEqual(count, 2 * (2 * 6 * 9 * 9) * (4 * 3 * 3))

    def test_attention_takes_both_products_and_half_of_them_when_causal(self):
        if not hasattr(functional, "scaled_dot_product_attention"):
            return  # PyTorch 1.13 spells it out in other operators
        q = torch.ones(1, 2, 16, 8)
        whole = self.operations(lambda: functional.scaled_dot_product_attention(q, q, q))
        causal = self.operations(
            lambda: functional.scaled_dot_product_attention(q, q, q, is_causal=True)
        )
        self.assertEqual(whole, 2 * 16 * 16 * (4 * 8 + 5))
        self.assertEqual(causal, whole // 2)

    def test_arguments_are_found_by_name_too(self):
        a, b = torch.ones(3, 5), torch.ones(5, 7)
        self.assertEqual(self.operations(lambda: torch.mm(a, mat2=b)), 210)

    def test_element_wise_operators_and_reductions_take_one_an_element(self):
        x = torch.ones(4, 8)
        self.assertEqual(self.operations(lambda: x + 1), 32)
        self.assertEqual(self.operations(lambda: x.sum(dim=1)), 32)
        self.assertEqual(self.operations(lambda: torch.softmax(x, 1)), 5 * 32)

    def test_moving_data_takes_none(self):
        x = torch.ones(4, 8)
        self.assertEqual(self.operations(lambda: x.t().reshape(2, 16)[:, :3].clone()), 0)
        self.assertEqual(self.operations(lambda: torch.cat([x, x]).view(-1)), 0)
        self.assertEqual(account_of(lambda: x.unbind(0)).operators, {})

    def test_every_pass_over_memory_counts_as_unfused_bytes(self):
        x = torch.ones(4, 8)
        account = account_of(lambda: (x + x) * 2)
        add, multiply = account.operators["add"], account.operators["mul"]
        self.assertEqual((add.read_bytes, add.written_bytes), (128, 128))  # x is read once
        self.assertEqual((multiply.read_bytes, multiply.written_bytes), (128, 128))

    def test_what_is_broadcast_is_read_once(self):
        x = torch.ones(1, 8)
        account = account_of(lambda: x.expand(100, 8) + 1)
        self.assertEqual(account.operators["add"].read_bytes, 32)

    def test_a_gather_reads_what_comes_out(self):
        table, indices = torch.ones(1000, 4), torch.tensor([1, 2])
        account = account_of(lambda: functional.embedding(indices, table))
        self.assertEqual(account.operators["embedding"].read_bytes, 2 * 4 * 4 + 2 * 8)

    def test_memory_that_is_let_go_is_not_alive(self):
        def forward():
            x = torch.ones(1000)
            for _ in range(5):
                x = x + 1

        self.assertEqual(account_of(forward).peak_bytes, 2 * 4000)

    def test_a_long_forward_is_given_up(self):
        account = operators.new_account(0)
        with self.assertRaises(operators.TooLong), account:
            torch.ones(2) + 1


PROBLEM = """
import torch
ROWS = 4
COLUMNS = ROWS * 8
NAME = "four"
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.exp(x) * 2
def get_inputs():
    return [torch.randn(ROWS, COLUMNS)]
"""


class FiguresTest(unittest.TestCase):
    def need(self, **expressions):
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write(PROBLEM)
            file.flush()
            tree = problem.apply_settings(problem.parse(file.name), {"ROWS": "2"})
            return estimate.measure(tree, file.name, expressions)

    def test_expressions_see_the_constants_as_they_are_set(self):
        figures = self.need(flops="3 * ROWS * COLUMNS // 2", bytes="(COLUMNS - 1) * 4.0").figures
        self.assertEqual(figures, {"flops": 48.0, "bytes": 60.0})

    def test_what_is_no_arithmetic_is_refused_with_its_text(self):
        for text in (
            "ROW * 2",
            "NAME",
            "ROWS ** 9",
            "len([1])",
            "2 *",
            "1 / 0",
            "get_inputs()",
            "1e308 * 10",
            "-1 * 3",
        ):
            with self.assertRaises(Failure) as caught:
                self.need(flops=text)
            self.assertIn(text, caught.exception.message)

    def test_the_account_is_json_with_signature_and_operators(self):
        document = json.loads(estimate.account(self.need()))
        self.assertEqual(document["inputs"], ["x float32[2, 16]"])
        self.assertEqual(document["outputs"], ["out float32[2, 16]"])
        self.assertEqual([item["name"] for item in document["operators"]], ["exp", "mul"])
        self.assertEqual(estimate.account(None), "{}")


class ProfileTest(unittest.TestCase):
    def test_time_is_told_operator_by_operator(self):
        a = torch.ones(200, 200)
        document = json.loads(profile.profile(lambda: torch.exp(a @ a), 50))
        names = [operator["name"] for operator in document["operators"]]
        self.assertIn("mm", names)
        self.assertIn("exp", names)
        self.assertGreater(document["wall_ns"], 0)
        by_name = {operator["name"]: operator for operator in document["operators"]}
        self.assertEqual(by_name["mm"]["calls"], 1)


if __name__ == "__main__":
    unittest.main()
