"""Tests how code that torch.compile generated becomes a candidate: which argument is which tensor,
the text of the wrapping, and the refusals. tests/mine/fake_inductor.py stands in for the compiler
where PyTorch has none.
"""

import ast
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import types
import unittest

from fake_judge import SUPPORT, torch

from assay_host import inductor, inductor_source, mined_candidate

_HOST = os.path.join(SUPPORT, "python", "assay_host", "__main__.py")
_FAKE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "mine")
_HAS_COMPILER = hasattr(torch, "compile")

_PROBLEM = """
import torch
import torch.nn as nn

ROWS, COLUMNS = 4, 6  # of x


class Scaled(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(size))

    def forward(self, x):
        return x * self.weight


class Model(nn.Module):
    {extra}

    def __init__(self, size):
        super(Model, self).__init__()
        self.layers = nn.Sequential(Scaled(size), Scaled(size))
        self.register_buffer("shift", torch.rand(size))

    def forward(self, x, y):
        {body}


def get_inputs():
    return [torch.rand(ROWS, COLUMNS), torch.rand(ROWS, COLUMNS)]


def get_init_inputs():
    return [COLUMNS]
"""
_BODY = "return torch.relu(self.layers[1](x) * self.layers[0].weight - y) + self.shift"


def _problem(extra='"""A model."""', body=_BODY):
    return _PROBLEM.format(extra=extra, body=body)


def _mine(text, settings=None, fake=not _HAS_COMPILER):
    """Runs the program as the sandbox does, without one. Returns what it wrote."""
    with tempfile.TemporaryDirectory() as root:
        for folder in ("problem", "tmp"):
            os.makedirs(os.path.join(root, folder))
        with open(os.path.join(root, "problem", "problem.py"), "w", encoding="utf-8") as file:
            file.write(text)
        with open(os.path.join(root, "problem", "settings.json"), "w", encoding="utf-8") as file:
            json.dump({"mode": "default", **(settings or {})}, file)
        arguments = [sys.executable, "-B", "-s", _HOST, "mine"]
        if fake:
            start = f"import sys, runpy; sys.path.insert(0, {_FAKE!r}); import fake_inductor; "
            start += f"sys.argv = ['', 'mine']; runpy.run_path({_HOST!r}, run_name='__main__')"
            arguments = [sys.executable, "-B", "-s", "-c", start]
        environment = {**os.environ, "ASSAY_HOST_ROOT": root}
        subprocess.run(arguments, env=environment, check=True, timeout=300)
        with open(os.path.join(root, "tmp", "mined.json"), encoding="utf-8") as file:
            return json.load(file)


def _run(text, name):
    module = types.ModuleType(name)
    exec(text, module.__dict__)
    return module


@unittest.skipUnless(_HAS_COMPILER, "this PyTorch has no compiler")
class RealCompiler(unittest.TestCase):
    def test_code_for_the_cpu_is_refused(self):
        self.assertIn("only Triton's kernels are mined", _mine(_problem())["refusal"])


@unittest.skipIf(_HAS_COMPILER, "the stand-in is for a PyTorch without one")
class Mine(unittest.TestCase):
    def test_a_candidate_computes_what_the_reference_does(self):
        found = _mine(_problem(), {"set": {"ROWS": "3"}})
        self.assertNotIn("refusal", found)
        self.assertEqual(found["entry_point"], "Model")
        self.assertIn("ROWS, COLUMNS = 3, 6  # of x", found["python_code"])
        self.assertIn("benchmark_compiled_module", found["original_triton_code"])
        candidate = found["triton_code"]
        for absent in ("benchmark_compiled_module", "get_inputs", "return x * self.weight"):
            self.assertNotIn(absent, candidate)
        self.assertIn("def forward(self, x, y):", candidate)
        self.assertIn("self.layers[0].weight", candidate)
        self.assertTrue(found["kernels"])
        self.assertIn("torch", found["versions"])

        reference, made = _run(found["python_code"], "one"), _run(candidate, "two")
        model, other = reference.Model(6), made.ModelNew(6)
        other.load_state_dict(model.state_dict())
        inputs = reference.get_inputs()
        self.assertEqual(inputs[0].shape, (3, 6))
        torch.testing.assert_close(other(*inputs), model(*inputs))

    def test_the_structure_of_a_result_is_kept(self):
        found = _mine(_problem(body="return x * 2, y + self.shift"))
        made = _run(found["triton_code"], "made").ModelNew(6)
        x, y = torch.rand(4, 6), torch.rand(4, 6)
        twice, shifted = made(x, y)
        torch.testing.assert_close(twice, x * 2)
        torch.testing.assert_close(shifted, y + made.shift)

    def test_modules_that_cannot_be_mined_are_refused_with_the_reason(self):
        for fault, words in {
            "break": "torch.compile breaks its graph: Data-dependent branching; Detected a branch.",
            "two": "it has 2 graphs",
            "constant": "its code takes constants from outside of its text: _tensor_constant0",
            "library": "no kernel of its own",
        }.items():
            with self.subTest(fault):
                body = "return torch.relu(x)" if fault == "library" else _BODY
                found = _mine(_problem(f'FAULT = "{fault}"', body))
                self.assertIn(words, found["refusal"])

    def test_without_a_compiler_the_machine_is_to_blame(self):
        found = _mine(_problem(), fake=False)
        self.assertIn("has no torch.compile", found["environment"])

    def test_a_broken_problem_is_told_from_a_refusal(self):
        found = _mine("import torch\nclass Model(torch.nn.Module): pass\n")
        self.assertIn("get_inputs", found["problem"])


class Arguments(unittest.TestCase):
    def wrapping(self, model, arguments, names):
        return mined_candidate.Wrapping(model, arguments, names, [])

    def test_each_argument_is_found_by_its_memory(self):
        class Part(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.list = torch.nn.ModuleList([torch.nn.Linear(2, 3)])
                self.table = torch.ones(2)

        part, x = Part(), torch.rand(2, 2)
        wrapping = self.wrapping(part, [[x, x.clone()], 5], ["pair", "count"])
        weight = part.list[0].weight
        self.assertEqual(wrapping.argument(0, weight.detach()), "self.list[0].weight")
        self.assertEqual(wrapping.argument(1, x), "pair[0]")
        self.assertEqual(wrapping.argument(2, part.table), "self.table")
        with self.assertRaisesRegex(inductor.Refusal, "argument 3 of its code is no input"):
            wrapping.argument(3, weight.t())
        with self.assertRaisesRegex(inductor.Refusal, "argument 4"):
            wrapping.argument(4, torch.rand(2, 2))

    def test_numbers_are_passed_on_or_guarded(self):
        wrapping = self.wrapping(torch.nn.Identity(), [0.5, 3], ["scale", "count"])
        passed = wrapping.argument(0, torch.tensor(0.5, dtype=torch.float64))
        self.assertEqual(passed, "torch.tensor(scale, dtype=torch.float64)")
        self.assertIn("if count != 3:", wrapping.guards())
        self.assertNotIn("scale", wrapping.guards())

    def test_results_may_be_arguments_and_views(self):
        x, made = torch.rand(2, 3), torch.rand(6)
        wrapping = self.wrapping(torch.nn.Identity(), [x], ["x"])
        result = {"a": made, "b": [x, None], "c": (made.view(2, 3),)}
        self.assertEqual(
            wrapping.result(result, [made]),
            "{'a': outputs[0], 'b': [x, None], 'c': (outputs[0].as_strided((2, 3), (3, 1), 0),)}",
        )
        with self.assertRaisesRegex(inductor.Refusal, "no result of its code"):
            wrapping.result(torch.rand(2), [made])
        with self.assertRaisesRegex(inductor.Refusal, "type complex"):
            wrapping.result(1j, [made])

    def test_names_that_the_code_uses_are_left_alone(self):
        def forward(call, x):
            pass

        self.assertEqual(mined_candidate.argument_names(forward, 2, {"call"})[0], "input_0")
        self.assertEqual(mined_candidate.argument_names(forward, 2, {"y"}), ["call", "x"])
        self.assertEqual(
            mined_candidate.argument_names(lambda *all: None, 2, {}), ["input_0", "input_1"]
        )


class Text(unittest.TestCase):
    def test_constants_are_set_where_they_stand(self):
        text = 'N = 4  # rows\nA = B = 2\nfrom math import pi  # "N = 4"\n'
        self.assertEqual(
            mined_candidate.pinned(text, {"N": "8 * 2"}), text.replace("N = 4  #", "N = 8 * 2  #")
        )
        space = {}
        exec(mined_candidate.pinned(text, {"A": "7"}), space)  # B keeps its value
        self.assertEqual((space["A"], space["B"]), (7, 2))

    def test_library_calls_are_told_from_kernels(self):
        tree = ast.parse(
            textwrap.dedent(
                """
                reinterpret_tensor = torch.ops.inductor._reinterpret_tensor
                async_compile = AsyncCompile()
                triton_poi_0 = async_compile.triton('triton_poi_0', '''x''', device_str='cuda')
                async_compile.wait(globals())
                def call(args):
                    extern_kernels.mm(a, b, out=c)
                    d = torch.ops.aten.convolution.default(c)
                    e = torch.ops.inductor.seeds(d)
                    triton_poi_0.run(e, 4)
                """
            )
        )
        facts = inductor_source.facts(tree)
        self.assertEqual((facts.kernels, facts.makers), (["triton_poi_0"], ["triton"]))
        self.assertEqual(
            facts.libraries, ["extern_kernels.mm", "torch.ops.aten.convolution.default"]
        )

    def test_names_that_mean_two_things_are_found(self):
        one = ast.parse("import torch\nimport torch.nn as nn\nimport random as math\nN = 4")
        other = ast.parse("import torch\nfrom torch import nn\nimport math\nN = 4")
        self.assertEqual(inductor_source.collisions(one, other), ["math"])

    def test_a_text_without_statements_keeps_all_else(self):
        text = "class A:\n    @b\n    def c(self):\n        return 1\n\n\n# after\n"
        text += "d = '''\n\n\n\n'''\n"
        tree = ast.parse(text)
        self.assertEqual(
            inductor_source.without(text, tree, tree.body[0].body),
            "class A:\n    pass\n\n\n# after\nd = '''\n\n\n\n'''\n",
        )


if __name__ == "__main__":
    unittest.main()
