"""What may be given as problem, candidate and terms."""

import importlib.util
import json
import os
import pathlib
import sys
import tempfile
import types
import unittest

import faked

import assay
from assay import _inputs

PYTHON = 'import torch\nCUDA = """\n#include <x>\n__global__ void k();\n"""\n'


def keep(text, ending):
    return f"kept{ending}"


class InputsTest(unittest.TestCase):
    def setUp(self):
        made = tempfile.TemporaryDirectory(prefix="assay-test-")
        self.addCleanup(made.cleanup)
        self.folder = pathlib.Path(made.name)
        self.file = self.folder / "mine.py"
        self.file.write_text("class Model:\n    pass\n\n\ndef get_inputs():\n    return []\n")

    def test_a_problem_is_a_path_a_name_or_a_source(self):
        for given in (self.file, str(self.file), os.path.relpath(self.file)):
            self.assertEqual(os.path.realpath(_inputs.problem_of(given, keep)), str(self.file))
        self.assertEqual(_inputs.problem_of("softmax", keep), "softmax")
        self.assertEqual(_inputs.problem_of("import torch\n", keep), "kept.py")
        for given in (pathlib.Path("softmax"), "no/softmax", "softmax.py", 7, None, b"a\n"):
            with self.assertRaises(assay.UsageError):
                _inputs.problem_of(given, keep)

    def test_a_problem_is_a_class_or_a_module_of_a_problem_file(self):
        module = imported("problem_of_test", self.file)
        self.assertEqual(_inputs.problem_of(module, keep), str(self.file))
        self.assertEqual(_inputs.problem_of(module.Model, keep), str(self.file))
        cell = types.ModuleType("cell")
        for given, told in (
            (InputsTest, "class InputsTest is no problem: its file has no get_inputs"),
            (json, "module json is no problem"),
            (cell, "module cell is in no file"),
            (type("Model", (), {"__module__": "cell"}), "class Model is in no file"),
        ):
            with self.assertRaisesRegex(assay.UsageError, told):
                _inputs.problem_of(given, keep)

    def test_candidates_are_paths_sources_or_both(self):
        found = _inputs.candidates_of([self.file, PYTHON, assay.Source("x", "a.c")])
        self.assertEqual(found[0], {"path": str(self.file)})
        self.assertEqual(found[1], {"name": "source.py", "source": PYTHON})
        self.assertEqual(found[2], {"name": "a.c", "source": "x"})
        self.assertEqual(len(_inputs.candidates_of(str(self.file))), 1)
        folder = str(self.file.parent)  # several files are one candidate, too
        self.assertEqual(_inputs.candidates_of(folder), [{"path": folder}])
        for given in ([], 7, [7], None, "softmax", "nowhere.cpp", [b"x\n"]):
            with self.assertRaises(assay.UsageError):
                _inputs.candidates_of(given)

    def test_the_language_of_a_source(self):
        for text, name in (
            (PYTHON, "source.py"),
            ("Faster:\n\n```cpp\n#include <x>\nint f();\n```\n", "answer.md"),
            ("@triton.jit\ndef k():\n", "source.py"),
            ("class ModelNew(torch.nn.Module):  # mine\n", "source.py"),
            ("#include <assay/kernel.h>\n__global__ void k() {}\n", "source.cu"),
            ("//! launch k<<<1, 32>>>\n", "source.cu"),
            ("\n  #include <cmath>\nclass A {\n", "source.cpp"),
        ):
            self.assertEqual(_inputs.guess_name(text), name)
        with self.assertRaisesRegex(assay.UsageError, r"assay.Source\(text, name\)"):
            _inputs.guess_name("no code\n")

    def test_terms(self):
        given = {"p": 2, "size": None, "baseline": ["eager", "compiled"], "against": self.file}
        expected = {"p": 2, "baseline": "eager,compiled", "against": str(self.file)}
        self.assertEqual(_inputs.terms_of(given, keep), expected)
        against = {"against": assay.Source("int x;\n", "a.c")}
        self.assertEqual(_inputs.terms_of(against, keep), {"against": "kept.c"})
        with self.assertRaisesRegex(assay.UsageError, "did you mean threads"):
            _inputs.terms_of({"thread": 1}, keep)

    def test_terms_are_those_of_the_schema(self):
        path = faked.HERE.parent / "docs" / "worker.schema.json"
        terms = json.loads(path.read_text(encoding="utf-8"))["$defs"]["terms"]["properties"]
        self.assertEqual({*_inputs.TERMS, "problem"}, set(terms))


def imported(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    unittest.main()
