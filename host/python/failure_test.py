"""Tests what an exception of foreign code is said to come of: the file, or what this machine lacks.
"""

import contextlib
import errno
import io
import os
import sys
import tempfile
import textwrap
import unittest
from unittest import mock

import torch

from assay_host import candidate, failure, newer_torch

NOT_HERE = ", which is not here ("
MAIN = "from .ops.scale import F\nfrom plain import G\nH = int(open('data.txt').read())\n"


def explained(source):
    """Runs the source as a candidate's file, and returns the words for what it raises."""
    return because(source).message


def because(source, number=failure.CANDIDATE_LOAD, name="candidate.py"):
    """Runs the source as a file of this name, and returns the Failure for what it raises."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(source))
        try:
            with open(path, encoding="utf-8") as file:
                exec(compile(file.read(), path, "exec"), {"__name__": "candidate"})
        except BaseException as error:
            return failure.because(number, error, path)
    raise AssertionError("it raises nothing")


class Explains(unittest.TestCase):
    def tearDown(self):
        failure.cuda_is_here = False

    def test_cuda_by_the_words_of_an_exception(self):
        for text in (
            "Torch not compiled with CUDA enabled",
            "Found no NVIDIA driver on your system",
            "x must be a CUDA tensor",
            "CUDA_HOME environment variable is not set",
            "no CUDA-capable device is detected",
        ):
            said = explained(f"raise RuntimeError({text!r})")
            self.assertIn("candidate.py line 1: it needs CUDA" + NOT_HERE, said)
            self.assertIn(text, said)
            failure.cuda_is_here = True
            self.assertNotIn(NOT_HERE, explained(f"raise RuntimeError({text!r})"))
            failure.cuda_is_here = False

    def test_a_lone_file_that_needs_others_is_told_of_folders(self):
        way = "several files is judged as their folder: assay judge PROBLEM FOLDER"
        for source in (
            "from .ops import f",
            "import of_my_own",
            "open('csrc/bind.cpp')",
            "raise RuntimeError('Error building extension\\nb.cc:1: fatal error: a: No such file')",
        ):
            self.assertIn(way, explained(source))
        for source in ("from torch import no_such", "open('nvcc')", "from json import no_such"):
            self.assertNotIn(way, explained(source))

    def test_a_folders_entry_needs_nothing_beside_it(self):
        with tempfile.TemporaryDirectory() as folder:
            files = {"entry": "main.py", "folder/main.py": MAIN, "folder/ops/scale.py": "F = 2\n"}
            files |= {"folder/plain.py": "G = 3\n", "folder/data.txt": "4"}
            for name, text in files.items():
                place = os.path.join(folder, name)
                os.makedirs(os.path.dirname(place), exist_ok=True)
                with open(place, "w", encoding="utf-8") as file:
                    file.write(text)
            path = candidate.path_in(folder)
            self.assertEqual(path, os.path.join(folder, "folder", "main.py"))
            before = os.getcwd(), list(sys.path)
            try:
                module = candidate.import_file(path, {}, 0)
                self.assertEqual((module.F, module.G, module.H), (2, 3, 4))
                with open(path, "a", encoding="utf-8") as file:
                    file.write("from .none import x\n")
                with self.assertRaises(failure.Failure) as caught:
                    candidate.import_file(path, {}, 0)
            finally:
                os.chdir(before[0])
                sys.path[:] = before[1]
            self.assertIn("main.py line 4: ModuleNotFoundError", caught.exception.message)
            self.assertNotIn("judged as their folder", caught.exception.message)
            self.assertEqual(candidate.path_in(folder + "/folder"), f"{folder}/folder/candidate.py")

    def test_cuda_by_the_check_of_a_candidate(self):
        self.assertIn(
            "line 3: it needs CUDA",
            explained("class T:\n    is_cuda = False\nassert T().is_cuda\n"),
        )
        self.assertIn(
            "line 2: it needs CUDA", explained("import torch\nassert torch.cuda.is_available()\n")
        )
        self.assertIn("it needs CUDA", explained("raise RuntimeError('a GPU is required')"))

    def test_cuda_by_the_function_that_raises(self):
        source = """
            def _jit_compile(name, with_cuda):
                return [][0]
            exec(compile("def load(f, cuda):\\n    with_cuda = cuda\\n    return f(0, cuda)\\n",
                         "/torch/utils/cpp_extension.py", "exec"))
            load(_jit_compile, {})
        """
        self.assertIn("(it compiles CUDA sources)", explained(source.format(True)))
        self.assertIn("IndexError", explained(source.format(False)))

    def test_a_compiler_that_a_call_starts(self):
        for error in (PermissionError(errno.EPERM, "Operation not permitted"),
                      RuntimeError("Ninja is required to load C++ extensions")):  # fmt: skip
            self.assertIn("by torch.utils.cpp_extension", failure.describe_exception(error))
        self.assertNotIn("compile", failure.describe_exception(PermissionError(errno.EACCES, "no")))

    def test_a_module_that_is_not_installed_is_named(self):
        said = explained("import no_such_package.part")
        self.assertIn("it imports the module no_such_package" + NOT_HERE, said)
        self.assertNotIn("CUDA", said)
        said = explained("import pycuda.driver")
        self.assertIn("it needs CUDA" + NOT_HERE, said)
        failure.cuda_is_here = True
        self.assertIn("it imports the module pycuda" + NOT_HERE, explained("import pycuda.driver"))

    def test_what_only_a_newer_pytorch_has_is_named_with_its_release(self):
        """Files that use torch.compile or rms_norm were BUILD FAILED or wrong by an old PyTorch."""
        names = {"torch.of_later": (9, 1), "torch.nn.later": (9, 2), "torch.Tensor.later": (9, 3)}
        with mock.patch.dict(newer_torch._SINCE, names):
            for source, name, release in (
                ("import torch\ntorch.of_later", "torch.of_later", "9.1"),
                ("import torch.nn.later.part", "torch.nn.later", "9.2"),
                ("from torch.nn import later", "torch.nn.later", "9.2"),
                ("import torch\ntorch.zeros(1).later()", "torch.Tensor.later", "9.3"),
            ):
                said = because(source)
                self.assertEqual(said.number, failure.CANDIDATE_NOT_HERE, said.message)
                self.assertIn(f"it needs {name} of PyTorch {release}" + NOT_HERE, said.message)
                self.assertIn(f"use --python with PyTorch {release} or later", said.message)
        for source in (
            "import torch\ntorch.of_later",
            "import torch.nn.later",
            "from torch import softmaxx",
            "import torch\nraise AttributeError('of_later')",
        ):
            self.assertEqual(because(source).number, failure.CANDIDATE_LOAD, source)
        # A name is looked for in this PyTorch first: what it has is no reason.
        with mock.patch.dict(newer_torch._ARGUMENT_SINCE, {"LayerNorm.later": (99, 1)}):
            said = explained("import torch\ntorch.nn.LayerNorm(4, later=False)")
            own = "class LayerNorm: pass\nLayerNorm(later=False)"
            self.assertNotIn("99.1", explained(own))
        self.assertIn("it needs the argument later of LayerNorm of PyTorch 99.1", said)
        with mock.patch.dict(newer_torch._SINCE, {"torch.softmaxx": (1, 0)}):
            self.assertNotIn(NOT_HERE, explained("import torch\ntorch.softmaxx"))

    def test_what_is_not_here_has_a_number_whatever_its_words_are(self):
        lacking = "import no_such_package"
        self.assertEqual(because(lacking).number, failure.CANDIDATE_NOT_HERE)
        self.assertEqual(
            because(lacking, failure.PROBLEM_FORWARD).number, failure.PROBLEM_NOT_HERE
        )
        said = because("raise ValueError('it imports it, which is not here (so it says)')")
        self.assertEqual(said.number, failure.CANDIDATE_LOAD)
        original, failure.needs_cuda = failure.needs_cuda, lambda why: "in other words"
        try:
            reworded = because("import pycuda.driver")
        finally:
            failure.needs_cuda = original
        self.assertEqual(reworded.number, failure.CANDIDATE_NOT_HERE)
        self.assertNotIn(NOT_HERE, reworded.message)

    def test_an_extension_that_does_not_compile_is_told_by_a_flag(self):
        text = "Error building extension 'e'\nmain.cpp:1:10: error: expected ';'\n"
        self.assertTrue(because(f"raise RuntimeError({text!r})").of_extension)
        words = "the extension does not compile: so it says"
        self.assertFalse(because(f"raise RuntimeError({words!r})").of_extension)

    def test_a_fault_of_the_file_stays_one(self):
        for source in (
            "import os.no_such_part",
            "from os import no_such_name",
            "undefined_CUDA",
            "raise ValueError('cuda was never asked for')",
            "x = [][0]",
        ):
            self.assertNotIn(NOT_HERE, explained(source), source)

    def test_the_text_of_argparse_is_kept(self):
        """It was 'it calls sys.exit(2)', and the text went to a stderr that nobody reads."""
        source = """
            import argparse
            parser = argparse.ArgumentParser()
            parser.add_argument("--size", required=True)
            parser.parse_args([])
        """
        with contextlib.redirect_stderr(io.StringIO()):
            said = explained(source)
        self.assertIn("candidate.py line 5: its argument parser ends the program", said)
        self.assertIn("the following arguments are required: --size; a file is imported", said)

    def test_a_problem_is_one_file(self):
        source = "open('/nowhere/weights.pt')"
        said = because(source, failure.PROBLEM_LOAD, "problem/mine.py").message
        self.assertIn("mine.py line 1: FileNotFoundError", said)
        self.assertIn("a problem is judged from its one file", said)
        self.assertNotIn("one file", explained(source))

    def test_what_this_pytorch_lacks(self):
        self.assertIn(
            f"no attribute 'compiled'; this is PyTorch {torch.__version__}",
            explained("import torch\ntorch.compiled()"),
        )
        self.assertNotIn("PyTorch", explained("import os\nos.compiled()"))

    def test_an_extension_without_the_headers_of_cuda(self):
        text = "Error building extension 'e'\nmain.cpp:1:10: fatal error: {}: No such file\n"
        said = explained(f"raise RuntimeError({text.format('cuda_fp16.h')!r})")
        self.assertIn("needs CUDA", said)
        said = explained(f"raise RuntimeError({text.format('mine.h')!r})")
        self.assertIn("the extension does not compile", said)
        self.assertNotIn("CUDA", said)


if __name__ == "__main__":
    sys.exit(unittest.main())
