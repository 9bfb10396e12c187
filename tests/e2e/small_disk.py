"""A small file system of a test's own, which needs the right to mount."""
import contextlib
import subprocess

import pytest


@contextlib.contextmanager
def small_disk(folder, size):
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0755", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("needs the right to mount a small disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder):
    """Leaves no byte; returns the file that takes them."""
    with contextlib.suppress(OSError), open(folder / "filler", "wb") as filler:
        while True:
            filler.write(b"x" * 4096)
            filler.flush()
    return folder / "filler"
