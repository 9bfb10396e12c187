"""Tests which names a candidate's forward is certain to look up in vain."""

import importlib.util
import os
import sys
import tempfile
import textwrap
import unittest

SUPPORT = os.environ["ASSAY_SUPPORT"]
sys.path.insert(0, os.path.join(SUPPORT, "python"))

from assay_host import missing_names  # noqa: E402

FILE = """
import torch
import torch.nn as nn
SCALE = 2
def double(x):
    return x * SCALE
{head}
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)
        {init}
    @property
    def weight(self):
        raise AttributeError("not yet")
    def forward({arguments}):
{body}
"""


class Find(unittest.TestCase):
    def found(self, body, head="", init="pass", arguments="self, x"):
        body = textwrap.indent(textwrap.dedent(body).strip("\n"), 8 * " ")
        text = FILE.format(head=head, init=init, body=body, arguments=arguments)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "candidate.py")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            spec = importlib.util.spec_from_file_location("candidate_of_a_test", path)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return missing_names.find(module.ModelNew(), path)

    def test_what_forward_certainly_looks_up_in_vain_is_named(self):
        name, line = "NameError: name 'wrong_name' is not defined", "line 17: "
        for body in (
            "return wrong_name",
            "return double(x + wrong_name[0] * 2)",
            "return wrong_name.softmax(x)",
            "x += wrong_name",
            "self.y = f'{wrong_name}'",
            "return self.layer(x, *[wrong_name])",
        ):
            self.assertEqual(self.found(body), line + name, body)
        self.assertEqual(self.found("if wrong_name:\n    x = x + 1\nreturn x"), line + name)
        loop = "for i in range(3):\n    x = x + i\nreturn wrong_name"
        self.assertEqual(self.found(loop), "line 19: " + name)
        self.assertEqual(
            self.found("y = double(x)\nreturn self.layers(y)"),
            "line 18: AttributeError: 'ModelNew' object has no attribute 'layers'",
        )

    def test_what_may_be_there_or_never_be_reached_is_left_alone(self):
        for body in (
            "y = double(x)\nreturn self.layer(y) * SCALE + len(x)",
            "return self.weight",
            "return [wrong_name for wrong_name in x]",
            "return x if self.training else wrong_name",
            "return x is None or wrong_name",
            "return 3 < x < wrong_name",
            "return (lambda: wrong_name) and x",
            "if self.training:\n    x = wrong_name\nelse:\n    return x\nreturn wrong_name",
            "if len(x):\n    return x\nreturn wrong_name",
            "for one in x:\n    return one\nreturn wrong_name",
            "try:\n    y = wrong_name\nexcept NameError:\n    y = x\nreturn y",
            "def inner():\n    return wrong_name\nreturn x",
            "y: wrong_name = x\nreturn y",
            "import math as wrong_name\nreturn wrong_name",
            "self.fresh = x\nreturn self.fresh",
            "yield wrong_name",
            "return x.wrong_name + self.layer.wrong_name",
        ):
            self.assertIsNone(self.found(body), body)

    def test_names_that_the_file_may_create_are_left_alone(self):
        for head in (
            "def make():\n    global wrong_name\n    wrong_name = 3",
            "def make(): return {'wrong_name': 3}",
            "import builtins",
            "def make(name): globals()[name] = 3",
            "def make(thing, name): setattr(thing, name, 3)",
            "def make(x): return dict(wrong_name=x)",
        ):
            self.assertIsNone(self.found("return wrong_name", head), head)
        self.assertIsNotNone(self.found("return wrong_name", "def make(x): setattr(x, 'y', 3)"))
        self.assertIsNone(self.found("return args.count(args)", arguments="*args"))
        head = "class Other:\n    def __getattr__(self, name): return 3"
        self.assertIsNone(self.found("return wrong_name", head))

    def test_calls_that_are_none_of_forward_are_left_alone(self):
        self.assertIsNone(self.found("return wrong_name", init="self.forward = double"))
        hidden = "self.eval(); ModelNew.__call__ = lambda self, x: x"
        self.assertIsNone(self.found("return wrong_name", init=hidden))
        self.assertIsNotNone(self.found("return wrong_name", init="self.eval()"))

    def test_buffers_with_literal_names_do_not_hide_others(self):
        init = "self.register_buffer('steps', torch.arange(3))"
        self.assertIsNone(self.found("return x + self.steps", init=init))
        self.assertIsNotNone(self.found("return x + self.step", init=init))
        init = "[self.register_buffer(f's{i}', torch.arange(3)) for i in range(2)]"
        self.assertIsNone(self.found("return x + self.s1 + self.s2", init=init))


if __name__ == "__main__":
    unittest.main()
