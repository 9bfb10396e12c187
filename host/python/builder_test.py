"""Tests the builder of candidates in Python: what it packs, and how it fails."""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

from candidate_test import NEW_SOFTMAX, CandidateTest
from fake_judge import SUPPORT
from sample_problems import SOFTMAX


def has_extension_headers():
    from torch.utils import cpp_extension

    return (
        shutil.which("ninja", path=f"/usr/bin:{os.path.dirname(sys.executable)}")
        and shutil.which("c++")
        and any(
            os.path.exists(os.path.join(path, "torch", "extension.h"))
            for path in cpp_extension.include_paths()
        )
        and any(
            os.path.exists(os.path.join(path, "pybind11", "pybind11.h"))
            for path in cpp_extension.include_paths() + ["/usr/include"]
        )
    )


needs_extensions = unittest.skipUnless(has_extension_headers(), "headers or tools are missing")


EXTENSION = """
import torch
from torch.utils.cpp_extension import load_inline
source = '''
#include <torch/extension.h>
torch::Tensor row_softmax(torch::Tensor x) { return torch::softmax(x, 1)%s; }
'''
module = load_inline(name="row_softmax", cpp_sources=source, functions=["row_softmax"])
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return module.row_softmax(x)
"""


class Builder(CandidateTest):
    def setUp(self):
        self.describe(SOFTMAX)
        self.root = tempfile.mkdtemp(prefix="assay-test-")
        self.addCleanup(shutil.rmtree, self.root)

    def build(self, candidate):
        for folder in ("problem", "candidate", "tmp"):
            os.makedirs(os.path.join(self.root, folder), exist_ok=True)
        for name, content in (
            ("candidate.py", candidate.encode()),
            ("init.pickle", self.reference.record),
        ):
            with open(os.path.join(self.root, "candidate", name), "wb") as file:
                file.write(content)
        return subprocess.run(
            [sys.executable, "-B", "-s", os.path.join(SUPPORT, "python", "assay_host"), "build"],
            capture_output=True,
            text=True,
            timeout=280,
            env={
                "PATH": "/usr/local/bin:/usr/bin:/bin",
                "HOME": "/tmp",
                "ASSAY_HOST_ROOT": self.root,
            },
        )

    def tar_path(self):
        return os.path.join(self.root, "tmp", "extensions.tar")

    def test_plain_pytorch_gives_an_empty_tar(self):
        built = self.build(NEW_SOFTMAX + "\nprint('noise')\n")
        self.assertEqual((built.returncode, built.stdout, built.stderr), (0, "", ""))
        with tarfile.open(self.tar_path()) as archive:
            self.assertEqual(archive.getnames(), [])
        self.assertGreater(os.path.getsize(self.tar_path()), 0)

    def test_an_interpreter_that_does_not_end_is_not_waited_for(self):
        """The build took all of its time, and was said to import for 60 s."""
        built = self.build(
            NEW_SOFTMAX + """
import atexit, threading, time
class Lingers:
    def __del__(self): time.sleep(1000)
lingers = Lingers()
atexit.register(time.sleep, 1000)
threading.Thread(target=time.sleep, args=(1000,)).start()
"""
        )
        self.assertEqual((built.returncode, built.stderr), (0, ""))

    def test_a_candidate_that_fails_gives_one_message(self):
        built = self.build(
            "import torch\nprint('noise')\nclass ModelNew(torch.nn.Module):\n"
            "    def __init__(self): raise ValueError('no')\n"
        )
        self.assertEqual(built.returncode, 1)
        self.assertEqual(
            built.stderr, "ModelNew(0 arguments) fails: candidate.py line 4: ValueError: no\n"
        )
        self.assertFalse(os.path.exists(self.tar_path()))

    @needs_extensions
    def test_an_extension_is_built_once_and_its_hosts_never_compile(self):
        built = self.build(EXTENSION % "")
        self.assertEqual((built.returncode, built.stderr), (0, ""))
        with open(self.tar_path(), "rb") as file:
            extensions = file.read()
        # In the host's root nothing is left of the build but the tar.
        shutil.rmtree(os.path.join(self.root, "tmp"))
        os.makedirs(os.path.join(self.root, "candidate"), exist_ok=True)
        with open(os.path.join(self.root, "candidate", "extensions.tar"), "wb") as file:
            file.write(extensions)
        judge, _, failed, _ = self.run_candidate(EXTENSION % "", root=self.root)
        self.assertEqual(failed, 0, judge.message())
        self.assert_agrees(judge)
        folder = os.path.join(self.root, "tmp", "extensions", "row_softmax")
        self.assertFalse(os.path.exists(os.path.join(folder, "main.o")), "it was compiled again")
        with open(f"/proc/{judge.pid}/maps", encoding="ascii") as file:
            self.assertIn(os.path.join(folder, "row_softmax.so"), file.read())

    @needs_extensions
    def test_an_extension_that_does_not_compile_gives_its_first_error(self):
        built = self.build(EXTENSION % " + no_such_name")
        self.assertEqual(built.returncode, 40)  # an extension's own
        self.assertEqual(len(built.stderr.splitlines()), 1, built.stderr)
        first = r"candidate.py line 8: .*main.cpp:4:\d+: error: .*no_such_name"
        self.assertRegex(built.stderr, first)


if __name__ == "__main__":
    unittest.main()
