"""Tests how a candidate's result is matched with the outputs of the reference."""

import dataclasses
import os
import sys
import unittest

import torch

SUPPORT = os.environ["ASSAY_SUPPORT"]
sys.path.insert(0, os.path.join(SUPPORT, "python"))

from assay_host import structure  # noqa: E402

A, B, C = torch.zeros(1), torch.ones(1), torch.full((1,), 2.0)


@dataclasses.dataclass
class Result:
    y: torch.Tensor
    z: object = None


class Outputs(unittest.TestCase):
    def flat(self, reference, candidate):
        """Returns the values of a candidate's outputs, in the order of the reference's."""
        form = structure.form_of(reference)
        return [tensor.item() for tensor in structure.flatten_outputs(candidate, [], form)]

    def refused(self, reference, candidate):
        with self.assertRaises(structure.OutputMismatch) as caught:
            self.flat(reference, candidate)
        return str(caught.exception)

    def test_keys_decide_in_any_order_and_depth(self):
        self.assertEqual(self.flat({"y": A, "z": B}, {"z": B, "y": A}), [0, 1])
        nested = (C, [{"y": A, "z": {"a": B, "b": 2.0}}])
        other = (C, [{"z": {"b": 2.0, "a": B}, "y": A}])
        self.assertEqual(self.flat(nested, other), [2, 0, 1, 2])
        self.assertEqual(self.flat({1: A, 0: B}, {0: B, 1: A}), [0, 1])

    def test_fields_of_a_dataclass_are_keys(self):
        self.assertEqual(self.flat(Result(A, Result(B)), Result(A, Result(B))), [0, 1])
        self.assertEqual(self.flat((C, Result(A, B)), (C, {"z": B, "y": A})), [2, 0, 1])
        self.assertIn("lacks 'z'", self.refused(Result(A, B), Result(A)))
        with self.assertRaises(TypeError):
            structure.flatten_outputs(Result, [])

    def test_missing_and_additional_keys_are_named(self):
        self.assertEqual(
            self.refused({"y": A, "z": B}, {"y": A, "out": B}),
            "the dictionary that forward returns lacks 'z' and has besides 'out'; the reference's "
            "has the keys 'y', 'z'",
        )
        self.assertIn("lacks 'z'; ", self.refused([{"z": A}], [{"z": None}]))
        self.assertIn("has besides 'z'; ", self.refused({"y": A}, {"y": A, "z": B}))

    def test_keys_without_an_output_are_none(self):
        self.assertEqual(self.flat({"y": A, "loss": None}, {"y": A}), [0])
        self.assertEqual(self.flat({"y": A}, {"cache": (), "y": A}), [0])

    def test_where_either_has_no_keys_the_order_decides(self):
        self.assertEqual(self.flat({"y": A, "z": B}, (A, B)), [0, 1])
        self.assertEqual(self.flat((A, B), {"p": A, "q": B}), [0, 1])
        mixed = {"y": {"a": A, "b": B}, "z": C}
        self.assertEqual(self.flat(mixed, ({"b": B, "a": A}, C)), [0, 1, 2])
        self.assertEqual(self.flat({"y": {"a": A}, "z": C}, [A]), [0])
        self.assertEqual(self.flat({torch.float32: A}, {"y": B}), [1])

    def test_results_without_dictionaries_have_no_form(self):
        self.assertIsNone(structure.form_of((A, [B, None], 3)))
        self.assertEqual(structure.form_of((A, {"y": B})), [None, {"y": None}])
        with self.assertRaises(TypeError):
            structure.form_of({"y": "text"})


if __name__ == "__main__":
    unittest.main()
