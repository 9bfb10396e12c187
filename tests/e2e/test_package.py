"""The Debian package, unpacked: everything in its place, and it judges from there."""

import json
import os
import subprocess

import pytest

from conftest import ASSAY, GOOD, ROOT


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """The package's files, as dpkg would lay them out under a root of their own."""
    folder = tmp_path_factory.mktemp("package")
    subprocess.run(
        ["cpack", "-G", "DEB", "--config", ASSAY.parent / "CPackConfig.cmake", "-B", folder],
        check=True,
        capture_output=True,
        cwd=folder,
        timeout=300,
    )
    (package,) = folder.glob("*.deb")
    subprocess.run(["dpkg-deb", "-x", package, folder / "root"], check=True)
    control = subprocess.run(["dpkg-deb", "-f", package], capture_output=True, text=True)
    return folder / "root" / "usr", control.stdout


def can_lay_a_root(folder):
    """Whether this process may mount a layer over the system's root."""
    layers = f"lowerdir=/,upperdir={folder}/upper,workdir={folder}/work"
    command = (
        f"cd {folder} && mount -t tmpfs tmpfs . && cd {folder} && mkdir upper work root && "
        f"mount -t overlay overlay -o {layers} root"
    )
    return os.geteuid() == 0 and subprocess.run(
        ["unshare", "--mount", "sh", "-c", command], capture_output=True
    ).returncode == 0


@pytest.mark.thorough
def test_the_package_is_installed_used_and_removed_without_a_trace(unpacked, tmp_path):
    if not can_lay_a_root(tmp_path):
        pytest.skip("needs root and overlay file systems")
    (package,) = (unpacked[0].parents[1]).glob("*.deb")
    process = subprocess.run(
        [ROOT / "scripts" / "test-package", "--here"],
        env=os.environ | {"ASSAY_PACKAGE": str(package)},
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert process.returncode == 0, process
    assert "installs, judges, and leaves nothing behind" in process.stdout


def test_a_release_names_its_maintainer():
    names = ("ASSAY_PACKAGE_CONTACT", "DEBFULLNAME", "DEBEMAIL")
    plain = {name: value for name, value in os.environ.items() if name not in names}
    for given in ({}, {"DEBFULLNAME": "player 1"}, {"ASSAY_PACKAGE_CONTACT": "player 1 <example>"}):
        process = subprocess.run(
            [ROOT / "scripts" / "package", "/nonexistent/folder"],
            env=plain | given,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert process.returncode == 2 and "DEBEMAIL" in process.stderr, process


def test_the_package_names_what_a_judgement_needs(unpacked):
    _, control = unpacked
    depends = next(line for line in control.splitlines() if line.startswith("Depends:"))
    for needed in ("bubblewrap (>= 0.8)", "g++", "libseccomp2", "libhwloc15", "libsqlite3-0"):
        assert needed in depends, depends
    assert "python3-torch" in control and "libopenblas0-pthread" in control, control


def test_everything_lies_where_its_reader_looks(unpacked):
    usr, _ = unpacked
    for path in (
        "share/man/man1/assay.1.gz",
        "share/man/man1/assay-judge.1.gz",
        "share/bash-completion/completions/assay",
        "share/zsh/vendor-completions/_assay",
        "share/fish/vendor_completions.d/assay.fish",
        "share/assay/schemas/verdict.schema.json",
        "share/assay/schemas/score.schema.json",
        "share/assay/schemas/machine.schema.json",
        "share/assay/schemas/event.schema.json",
        "share/doc/assay/LICENSE",
        "share/doc/assay/copyright",
        "share/doc/assay/changelog.gz",
        "include/assay/kernel.h",
        "lib/assay/problems/suite.toml",
    ):
        assert (usr / path).stat().st_size > 0, path
    shipped = {path.name for path in (usr / "lib/assay/problems").rglob("*.py")}
    assert shipped == {path.name for path in (ROOT / "problems").rglob("*.py")}


def test_the_unpacked_program_judges_by_name_from_any_folder(unpacked, assay):
    usr, _ = unpacked
    kernel = usr / "lib/assay/kernels/softmax/fused.cpp"
    process = subprocess.run(
        [usr / "bin/assay", "judge", "softmax", kernel, "--size", "tiny"]
        + ["--correctness-only", "--json"],
        capture_output=True,
        text=True,
        cwd=assay.home,
        env=assay.environment,
        timeout=120,
    )
    assert process.returncode == GOOD, process
    verdict = json.loads(process.stdout)
    assert verdict["correctness"]["passed"], process
    assert verdict["problem"]["path"] == str(usr / "lib/assay/problems/level1/softmax.py")
