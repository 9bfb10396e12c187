"""Runs a test program as an ordinary user, when started by root: who starts a sandbox decides what
stands around it.

    as_user.py TEST_PROGRAM [ARGUMENT ...]

The program, the helpers beside it and Assay's own are copied to a folder that this user can read,
laid out as in the build folder. Exits with the program's status, or with 77 (skipped) and why.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
USER = 65534  # nobody


def as_user(command):
    return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", *command]


def why_not():
    """Why this cannot be tried here; None where it can."""
    if os.geteuid() != 0:
        return "not started by root: the ordinary test has run as a user already"
    for program in ("setpriv", "bwrap"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    trial = as_user(["bwrap", "--unshare-user", "--ro-bind", "/", "/", "/bin/true"])
    tried = subprocess.run(trial, capture_output=True, text=True, cwd="/", check=False)
    if tried.returncode != 0:
        return f"users may not make user namespaces here: {tried.stderr.strip()}"
    return None


def copy_build(build, folder):
    """Everything that the program may need beside itself, readable by everybody."""
    for source in (build / "tests").iterdir():
        if source.is_file() and os.access(source, os.X_OK) and source.name in NEEDED:
            shutil.copy(source, folder / "tests" / source.name)
    shutil.copytree(build / "lib", folder / "lib", symlinks=False)
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)


NEEDED = {"sandbox_probe", "confine_without_landlock"}


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    if reason := why_not():
        print(f"skipped: {reason}")
        return SKIPPED
    NEEDED.add(program.name)
    with tempfile.TemporaryDirectory(prefix="assay-as-user-") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        (folder / "tests").mkdir()
        copy_build(program.parents[1], folder)
        command = as_user([str(folder / "tests" / program.name), *sys.argv[2:]])
        environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": "/"}
        return subprocess.run(command, cwd="/", env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
