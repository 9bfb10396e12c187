"""What the tests of the package share: the fake program in a folder of the test's."""

import json
import os
import pathlib
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
PROGRAM = str(HERE / "fake_assay.py")


def is_alive(pid):
    """Whether a process runs: one that has ended and was not waited for does not."""
    try:
        status = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return status.rsplit(")", 1)[1].split()[0] != "Z"


def ends(pid):
    """Whether the process ends within a few seconds."""
    for _ in range(500):
        if not is_alive(pid):
            return True
        time.sleep(0.01)
    return False


class FakedTest(unittest.TestCase):
    """Gives each test an empty $FAKE_FOLDER."""

    def setUp(self):
        made = tempfile.TemporaryDirectory(prefix="assay-test-")
        self.addCleanup(made.cleanup)
        self.folder = pathlib.Path(made.name)
        os.environ["FAKE_FOLDER"] = made.name
        self.addCleanup(os.environ.pop, "FAKE_FAILS", None)

    def requests(self):
        """What workers were asked, without what changes."""
        path = self.folder / "requests"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return [json.loads(line) for line in lines]

    def calls(self):
        lines = (self.folder / "calls").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]
