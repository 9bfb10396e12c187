"""Shared pieces of the end-to-end tests: they run the real binary with real PyTorch in the real sandbox."""
import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ASSAY = pathlib.Path(os.environ.get("ASSAY_BINARY", ROOT / "build" / "release" / "assay"))

SOFTMAX = str(ROOT / "problems" / "level1" / "softmax.py")

# Exit codes, as in the README.
GOOD, NOT_FASTER, USAGE, WRONG, BUILD_FAILED, DIED, FOUL, UNSETTLED, ENVIRONMENT = range(9)
INTERRUPTED = 130


class Run:
    """One finished call of assay."""

    def __init__(self, process):
        self.code = process.returncode
        self.out = process.stdout
        self.err = process.stderr

    @property
    def verdict(self):
        return json.loads(self.out)

    def __repr__(self):
        return f"exit {self.code}\nstdout: {self.out[-3000:]}\nstderr: {self.err[-3000:]}"


class Assay:
    def __init__(self, home):
        self.home = home
        self.environment = dict(os.environ, XDG_CACHE_HOME=str(home / "cache"), XDG_STATE_HOME=str(home / "state"))

    def __call__(self, *arguments, timeout=120, **environment):
        process = subprocess.run([str(ASSAY), *map(str, arguments)], capture_output=True, text=True, timeout=timeout,
                                 cwd=self.home, stdin=subprocess.DEVNULL, env=dict(self.environment, **environment))
        return Run(process)

    def judge(self, problem, *arguments, **keywords):
        return self("judge", problem, *arguments, "--json", **keywords)


@pytest.fixture
def assay(tmp_path):
    return Assay(tmp_path)


@pytest.fixture
def write(tmp_path):
    """Writes a file into the test's folder and gives its path."""

    def write_file(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write_file


def leftovers():
    """What a judgement may not leave behind: sandbox processes and their cgroups."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if "bwrap" in command.split(" ")[0] or "/assay/" in command:
            found.append(f"{entry.name} {command[:200]}")
    for hierarchy in ("memory", "pids", ""):
        root = pathlib.Path("/sys/fs/cgroup") / hierarchy
        found += [str(path) for path in root.rglob("assay-*") if path.is_dir()] if root.is_dir() else []
    return found
