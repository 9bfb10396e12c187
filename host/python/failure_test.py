"""Tests what an exception of foreign code is said to come of: the file, or what this machine lacks.
"""

import errno
import os
import sys
import tempfile
import textwrap
import unittest

import torch

from assay_host import failure

NOT_HERE = ", which is not here ("


def explained(source):
    """Runs the source as a candidate's file, and returns the words for what it raises."""
    return because(source).message


def because(source, number=failure.CANDIDATE_LOAD):
    """Runs the source as a candidate's file, and returns the Failure for what it raises."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "candidate.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(source))
        try:
            with open(path, encoding="utf-8") as file:
                exec(compile(file.read(), path, "exec"), {})
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
            self.assertIn("compile as the file is imported", failure.describe_exception(error))
        self.assertNotIn("compile", failure.describe_exception(PermissionError(errno.EACCES, "no")))

    def test_a_module_that_is_not_installed_is_named(self):
        said = explained("import no_such_package.part")
        self.assertIn("it imports the module no_such_package" + NOT_HERE, said)
        self.assertNotIn("CUDA", said)
        said = explained("import pycuda.driver")
        self.assertIn("it needs CUDA" + NOT_HERE, said)
        failure.cuda_is_here = True
        self.assertIn("it imports the module pycuda" + NOT_HERE, explained("import pycuda.driver"))

    def test_a_dtype_that_only_a_newer_pytorch_has_is_named(self):
        said = explained("import torch\ntorch.float8_of_later")
        self.assertIn("it needs the dtype float8_of_later" + NOT_HERE, said)
        self.assertIn("use --python with PyTorch 2.1 or later", said)

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
