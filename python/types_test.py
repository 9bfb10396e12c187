"""The package passes mypy in strict mode, for the oldest Python that it names."""

import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest

import faked


@unittest.skipIf(importlib.util.find_spec("mypy") is None, "mypy is not installed: scripts/setup")
class TypesTest(unittest.TestCase):
    def test_strict(self):
        with tempfile.TemporaryDirectory(prefix="assay-test-") as cache:
            command = [sys.executable, "-m", "mypy", "--strict", "--python-version", "3.9"]
            command += ["--cache-dir", os.path.join(cache, "cache"), str(faked.HERE / "assay")]
            ran = subprocess.run(
                command, cwd=cache, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
            )
        self.assertEqual(ran.returncode, 0, ran.stdout.decode())


if __name__ == "__main__":
    unittest.main()
