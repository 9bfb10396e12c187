"""Commands that end with one answer, episodes, and what the program is given."""

import os
import pathlib
import signal
import stat
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import unittest
import zipfile

import faked

import assay
from assay import _program, _run


class CommandsTest(faked.FakedTest):
    def test_a_run_gives_its_rows_the_last_of_each_candidate(self):
        rows = assay.run(self.folder, program=faked.PROGRAM, quiet=True, only="a*")
        found = [(each.candidate, each.verdict and each.verdict.outcome) for each in rows]
        self.assertEqual(found, [("a.cpp", "faster"), ("b.cu", None)])
        self.assertEqual(rows[1].error, "no CUDA")
        folder = str(self.folder)
        expected = ["run", folder, "--results", folder, "--quiet", "--only", "a*"]
        self.assertEqual(self.calls(), [expected])

    def test_a_run_of_which_a_part_cannot_be_judged_gives_the_rest(self):
        path = self.folder / "manifest.jsonl"
        rows = assay.run(path, program=faked.PROGRAM, quiet=True, partly=True)
        self.assertEqual(len(rows), 2)
        with self.assertRaisesRegex(assay.UsageError, "no size none"):
            assay.run(path, program=faked.PROGRAM, quiet=True, size="none")

    def test_scores_and_problems(self):
        rows = assay.run(self.folder, program=faked.PROGRAM, quiet=True)
        verdicts = [each.verdict for each in rows if each.verdict]
        self.assertEqual(assay.score(verdicts, program=faked.PROGRAM)["verdicts"], 1)
        assay.score(self.folder / "verdicts.jsonl", program=faked.PROGRAM, p=[1, 2])
        self.assertEqual(self.calls()[-1][2:], ["--json", "--p", "1,2"])
        self.assertEqual(assay.problems(program=faked.PROGRAM, level=1)[0].name, "fake")

    def test_options(self):
        given = {"correctness_only": True, "size": "tiny", "again": False, "only": None}
        self.assertEqual(_run.options_of(given), ["--correctness-only", "--size", "tiny"])

    def test_errors_are_those_of_the_exit_codes(self):
        os.environ["FAKE_FAILS"] = "yes"
        with self.assertRaisesRegex(assay.MachineError, "bubblewrap is missing"):
            assay.problems(program=faked.PROGRAM)
        with self.assertRaisesRegex(assay.MachineError, "was not found"):
            assay.problems(program=self.folder / "nowhere")

    def sleeper(self):
        for _ in range(500):
            path = self.folder / "sleeper"
            if path.exists() and path.read_text():
                return int(path.read_text())
            time.sleep(0.01)
        raise AssertionError("the program did not start")

    def test_a_limit_and_ctrl_c_end_the_program(self):
        with self.assertRaises(assay.TimedOut):
            _program.call(["sleep"], program=faked.PROGRAM, limit_s=1)
        self.assertFalse(faked.is_alive(self.sleeper()))
        (self.folder / "sleeper").unlink()

        def interrupt():
            self.sleeper()
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt).start()
        with self.assertRaises(KeyboardInterrupt):
            _program.call(["sleep"], program=faked.PROGRAM)
        self.assertFalse(faked.is_alive(self.sleeper()))

    def test_the_program_gets_this_python_if_it_has_pytorch(self):
        folder = self.folder / "site" / "torch"
        folder.mkdir(parents=True)
        (folder / "__init__.py").touch()
        script = "from assay import _program; print(_program.environment().get('ASSAY_PYTHON'))"

        def told(path, **more):
            variables = {name: os.environ[name] for name in os.environ if name != "ASSAY_PYTHON"}
            variables.update(PYTHONPATH=f"{faked.HERE}:{path}", **more)
            command = [sys.executable, "-B", "-S", "-c", script]
            ran = subprocess.run(command, env=variables, stdout=subprocess.PIPE, check=True)
            return ran.stdout.decode().strip()

        self.assertEqual(told(folder.parent), sys.executable)
        self.assertEqual(told(folder.parent, ASSAY_PYTHON="other"), "other")
        self.assertEqual(told(self.folder), "None")


class EpisodesTest(faked.FakedTest):
    def test_requests_and_the_end(self):
        with assay.Episodes("softmax", "--turns", "2", program=faked.PROGRAM) as episodes:
            self.assertEqual(episodes.ready["problems"], ["softmax", "--turns", "2"])
            self.assertEqual(episodes.ask("reset", seed=7)["seed"], 7)
            with self.assertRaisesRegex(assay.UsageError, "no such request"):
                episodes.ask("guess")
        with self.assertRaisesRegex(assay.MachineError, "closed"):
            episodes.ask("reset", seed=7)
        episodes.close()

    def test_a_process_that_ends(self):
        with assay.Episodes(program=faked.PROGRAM) as episodes:
            with self.assertRaisesRegex(assay.InternalError, "exit code 3"):
                episodes.ask("die")
        with self.assertRaises(assay.MachineError):
            assay.Episodes("broken", program=faked.PROGRAM)


class WheelTest(unittest.TestCase):
    """scripts/wheel, on a bundle of a few files."""

    def test_the_same_files_give_the_same_bytes_with_their_modes(self):
        with tempfile.TemporaryDirectory(prefix="assay-test-") as made:
            folder = pathlib.Path(made)
            (folder / "assay" / "bin").mkdir(parents=True)
            (folder / "assay" / "share").mkdir()
            (folder / "assay" / "bin" / "assay").write_text("#!/bin/sh\n")
            (folder / "assay" / "bin" / "assay").chmod(0o755)
            (folder / "assay" / "share" / "page").write_text("left out")
            with tarfile.open(folder / "bundle.tar.gz", "w:gz") as bundle:
                bundle.add(folder / "assay", "assay")
            variables = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
            made = []
            for name in ("one", "two"):
                script = faked.HERE.parent / "scripts" / "wheel"
                command = [sys.executable, "-B", script, folder / name, folder / "bundle.tar.gz"]
                subprocess.run(command, env=variables, check=True, stdout=subprocess.DEVNULL)
                made.append(next((folder / name).glob("assay-*-manylinux_2_36_x86_64.whl")))
            self.assertEqual(made[0].read_bytes(), made[1].read_bytes())
            with zipfile.ZipFile(made[0]) as wheel:
                modes = {each.filename: each.external_attr >> 16 for each in wheel.infolist()}
                records = [name for name in modes if name.endswith("/RECORD")]
                listed = wheel.read(records[0]).decode().splitlines()
        self.assertTrue(modes["assay/program/bin/assay"] & stat.S_IXUSR)
        self.assertFalse(modes["assay/__init__.py"] & stat.S_IXUSR)
        self.assertFalse([name for name in modes if "page" in name or "_test" in name])
        self.assertEqual(sorted(line.split(",")[0] for line in listed), sorted(modes))


if __name__ == "__main__":
    unittest.main()
