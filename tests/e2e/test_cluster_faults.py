"""Faults of what a cluster consists of: a shared folder, Slurm's commands, programs of nodes."""
import os
import pathlib
import subprocess
import tempfile
import threading

import pytest

from conftest import GOOD, ROOT
from small_disk import fill, small_disk
from test_slurm import arguments, candidates, expected, outcomes, program, slurm, wait_for

assert candidates and slurm  # the fixtures


class Said:
    """What a process writes to stderr, as it comes."""

    def __init__(self, process):
        self.text = ""
        self._process = process
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self._process.stderr:
            self.text += line

    def has(self, words):
        return lambda: words in self.text


def remount(folder, mode):
    subprocess.run(["mount", "-o", f"remount,{mode}", str(folder)], check=True)


@pytest.mark.thorough
def test_a_run_waits_while_its_folder_is_read_only_or_full(assay, candidates, tmp_path):
    with small_disk(tmp_path / "shared", "8m") as shared:
        folder = candidates(2)
        controller = assay.start(*arguments(folder, "--queue", shared / "queue"))
        heard = Said(controller)
        todo = shared / "queue" / "todo"
        wait_for(60, lambda: todo.exists() and len(list(todo.iterdir())) == 2)
        remount(shared, "ro")
        pilots = [assay.start("worker", "--queue", shared / "queue", "--device", "cpu")]
        said = [Said(pilots[0])]
        wait_for(60, said[0].has("Read-only file system"))
        remount(shared, "rw")
        filler = fill(shared)
        pilots.append(assay.start("worker", "--queue", shared / "queue", "--device", "cpu"))
        said.append(Said(pilots[1]))
        wait_for(60, said[1].has("No space left on device"))
        filler.unlink()
        assert controller.wait(timeout=100) == GOOD, heard.text
        for pilot in pilots:
            pilot.terminate()
        for pilot in pilots:
            pilot.wait(timeout=60)
    assert outcomes(folder) == {sample: expected(sample) for sample in range(2)}


# A Slurm of one node, this machine. Its squeue refuses once, then hangs once.
SBATCH = """
cat >{at}/job.sh
SLURM_JOB_ID=7 setsid bash {at}/job.sh >{at}/job.log 2>&1 &
echo $! >{at}/pid
echo 7
"""
SQUEUE = """
echo x >>{at}/looks
case $(wc -l <{at}/looks) in
  2) echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1 ;;
  3) exec sleep 300 ;;
esac
read -r pid 2>/dev/null <{at}/pid && kill -0 "$pid" 2>/dev/null && echo '7|RUNNING|n1|None'
exit 0
"""
SCANCEL = """
read -r pid 2>/dev/null <{at}/pid && kill "$pid" 2>/dev/null
exit 0
"""


@pytest.mark.thorough
def test_a_run_bears_slurm_commands_that_fail_and_hang(assay, candidates, tmp_path):
    folder = candidates(6)
    for name, text in (("sbatch", SBATCH), ("squeue", SQUEUE), ("scancel", SCANCEL)):
        path = program(tmp_path, name, text.format(at=tmp_path))
    # Long enough that the run still goes on when squeue hangs.
    slow = "import time\ntime.sleep(3)\n"
    for file in folder.glob("*.py"):
        if "broken" not in file.read_text():
            file.write_text(slow + file.read_text())
    run = assay(*arguments(folder, "--slurm"), PATH=path, timeout=200)
    assert run.code == GOOD, run
    assert "Unable to contact slurm controller" in run.err
    assert len((tmp_path / "looks").read_text().splitlines()) >= 3
    assert outcomes(folder) == {sample: expected(sample) for sample in range(6)}


@pytest.mark.thorough
def test_nodes_unpack_and_run_a_bundle(assay, candidates, slurm):
    # Not below pytest's folder, which others cannot read.
    with tempfile.TemporaryDirectory() as name:
        at = pathlib.Path(name)
        at.chmod(0o755)
        bundle = at / "bundle.tar.gz"
        made = subprocess.run(
            [ROOT / "scripts/bundle", bundle],
            env=dict(os.environ, ASSAY_BUILT="yes"),
            capture_output=True,
            text=True,
        )
        assert made.returncode == 0, made.stderr
        folder = candidates(3)
        (at / "node").mkdir()
        run = assay(
            *arguments(folder, "--slurm", "--nodes", "2", "--bundle", bundle),
            SLURM_CONF=str(slurm / "slurm.conf"),
            TMPDIR=str(at / "node"),
            timeout=200,
        )
        logs = "".join(log.read_text() for log in (folder / "logs").glob("*.log"))
        assert run.code == GOOD, f"{run}\n{logs}"
        assert outcomes(folder) == {sample: expected(sample) for sample in range(3)}
        digest = subprocess.run(["sha256sum", bundle], capture_output=True, text=True).stdout
        unpacked = [path.name for path in (at / "node").glob("assay-*")]
        # The nodes of one machine share a folder.
        assert unpacked == [f"assay-{os.getuid()}-{digest[:16]}"]
