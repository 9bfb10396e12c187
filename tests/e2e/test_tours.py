"""The tours in docs/: every command in them runs, in order, and ends as the page says."""

import re
import subprocess

import pytest

from conftest import ROOT

# What a checkout of KernelBench would bring; the names of its file and constants, our own text.
STAND_IN = '''"""A stand-in."""
import torch
import torch.nn as nn

batch_size = 4096
dim = 393216


class Model(nn.Module):
    def __init__(self):
        super(Model, self).__init__()

    def forward(self, x):
        return torch.softmax(x, dim=1)


def get_inputs():
    return [torch.rand(batch_size, dim)]


def get_init_inputs():
    return []
'''


def commands_of(page):
    """(command, exit codes that the page allows) for each line of its sh blocks."""
    text = (ROOT / "docs" / page).read_text()
    for block in re.findall(r"^```sh\n(.*?)^```$", text, re.M | re.S):
        for line in block.splitlines():
            expected = re.search(r"  # exits with (\d+)$", line)
            code = int(expected.group(1)) if expected else 0
            # On a busy machine no speed is settled, and equal programs may come out either way.
            judged = line.startswith("assay judge") and code in (0, 1)
            yield line.removesuffix(expected.group(0) if expected else ""), (
                (0, 1, 7) if judged else (code,)
            )


@pytest.mark.thorough
@pytest.mark.parametrize("page", ["tour-laptop.md", "tour-kernelbench.md", "tour-match.md"])
def test_every_command_of_a_tour_works(assay, tmp_path, page):
    folder = tmp_path / "clone"
    folder.mkdir()
    for entry in ROOT.iterdir():  # a clone that may be written to, without copying the build
        if entry.name not in (".git", "build"):
            (folder / entry.name).symlink_to(entry)
    (folder / "build").symlink_to(ROOT / "build")
    (folder / "KernelBench" / "level1").mkdir(parents=True)
    (folder / "KernelBench" / "level1" / "23_Softmax.py").write_text(STAND_IN)
    commands = list(commands_of(page))
    assert len(commands) >= 8, "the page has lost its commands"
    script = "".join(f'{command}\necho "code $?" >&3\n' for command, _ in commands)
    codes = tmp_path / "codes"
    process = subprocess.run(
        ["bash", "-c", f'exec 3> "{codes}"\n{script}'],
        capture_output=True,
        text=True,
        cwd=folder,
        env=assay.environment,
        stdin=subprocess.DEVNULL,
        timeout=600,
    )
    got = [int(line.split()[1]) for line in codes.read_text().splitlines()]
    for (command, allowed), code in zip(commands, got, strict=True):
        assert code in allowed, f"{command}: exit {code}\n{process.stderr[-3000:]}"
