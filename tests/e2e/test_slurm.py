"""assay run over many machines: pilots of a folder or a database, and real Slurm nodes on this
machine.

Each candidate is judged once, whatever is killed, and the table is that of one machine.
"""
import collections
import contextlib
import json
import os
import signal
import subprocess
import time

import postgres_server
import pytest
from conftest import ENVIRONMENT, GOOD, INTERRUPTED, ROOT, USAGE

RELU = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)

ROWS = 4

def get_inputs():
    return [torch.randn(ROWS, 64)]

def get_init_inputs():
    return []
"""
MODEL = (
    "import torch\nclass ModelNew(torch.nn.Module):\n"
    "    def forward(self, x):\n        return {}\n"
)
# Text and outcome.
KINDS = (
    (MODEL.format("torch.clamp(x, min=0)"), "correct"),
    (MODEL.format("torch.clamp(x, min=0.1)"), "wrong"),
    ("def broken(:\n", "build_failed"),
)


def expected(sample):
    return KINDS[sample % len(KINDS)][1]


@pytest.fixture
def candidates(tmp_path):
    """candidates(count): a folder of problems, and a run folder with so many candidates."""
    problem = tmp_path / "KernelBench" / "level1" / "19_ReLU.py"
    problem.parent.mkdir(parents=True)
    problem.write_text(RELU)

    def make(count, name="run"):
        folder = tmp_path / name
        folder.mkdir()
        for sample in range(count):
            text = KINDS[sample % len(KINDS)][0] + f"# {sample}\n"
            (folder / f"level_1_problem_19_sample_{sample}_kernel.py").write_text(text)
        return folder

    return make


def arguments(folder, *options):
    problems = folder.parent / "KernelBench"
    return ("run", folder, "--problems", problems, "--threads", "1", "--correctness-only", *options)


def outcomes(folder):
    """Outcome by sample; fails if a candidate has two rows."""
    rows = [json.loads(line) for line in (folder / "verdicts.jsonl").read_text().splitlines()]
    twice = [key for key, n in collections.Counter(row["key"] for row in rows).items() if n > 1]
    assert not twice, f"judged twice: {twice}"
    return {row["sample"]: row["verdict"]["outcome"] if row.get("verdict") else row for row in rows}


def workers(assay, place):
    shown = assay("workers", place, "--json")
    return json.loads(shown.out)["workers"] if shown.code == GOOD else []


def wait_for(seconds, look):
    """The value of a look once it is true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := look():
            return found
        time.sleep(0.2)
    raise AssertionError(f"not within {seconds} s")


def busy(assay, place):
    return lambda: [w for w in workers(assay, place) if w["state"] == "busy"]


def process_of(worker):
    return int(worker["name"].rsplit("-", 1)[1])


def kill(number):
    with contextlib.suppress(ProcessLookupError):
        os.kill(number, signal.SIGKILL)


@pytest.fixture
def server():
    """A PostgreSQL server."""
    if postgres_server.programs() is None:
        pytest.skip("PostgreSQL's server is not installed")
    with postgres_server.temporary() as running:
        yield running


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """A cluster of three nodes; its folder."""
    folder = tmp_path / "slurm"
    started = subprocess.run([ROOT / "tests/slurm/start", folder, "3"], stderr=subprocess.PIPE)
    try:
        if started.returncode == 3:
            pytest.skip(started.stderr.decode())
        assert started.returncode == 0, started.stderr.decode()
        monkeypatch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
        yield folder
    finally:
        subprocess.run([ROOT / "tests/slurm/stop", folder], check=False)


@pytest.mark.thorough
def test_two_pilots_share_a_folder_and_one_is_killed(assay, candidates):
    folder = candidates(4)
    place = folder.parent / "queue"
    pilot = ("worker", "--queue", place, "--device", "cpu", "--lease", "4", "--idle-stop", "60")
    controller = assay.start(*arguments(folder, "--queue", place, "--lease", "4"))
    pilots = [assay.start(*pilot), assay.start(*pilot)]
    victim = wait_for(60, busy(assay, place))[0]
    kill(process_of(victim))
    out, err = controller.communicate(timeout=100)
    assert controller.returncode == GOOD, out + err
    assert outcomes(folder) == {sample: expected(sample) for sample in range(4)}
    shown = assay("workers", place)
    assert "4 judged" in shown.out and "0 queued" in shown.out
    for each in pilots:
        each.terminate()
    assert INTERRUPTED in [each.wait(timeout=30) for each in pilots]


def test_slurm_judges_each_candidate_once_though_a_pilot_is_killed(assay, candidates, slurm):
    folder = candidates(6)
    options = ("--slurm", "--nodes", "2", "--lease", "4")
    controller = assay.start(*arguments(folder, *options), SLURM_CONF=str(slurm / "slurm.conf"))
    victim = wait_for(60, busy(assay, folder / "queue"))[0]
    assert victim["node"] in ("n1", "n2", "n3") and victim["job"]
    kill(process_of(victim))
    out, err = controller.communicate(timeout=120)
    assert controller.returncode == GOOD, out + err
    assert outcomes(folder) == {sample: expected(sample) for sample in range(6)}
    left = subprocess.run(
        ["squeue", "--noheader", "--states=PENDING,RUNNING"], capture_output=True, text=True
    )
    assert left.stdout == "", "the array goes with the run"


def lose_node(slurm, worker):
    """Kills the slurmd of a worker's node, and the worker that it started."""
    kill(int((slurm / "run" / f"{worker['node']}.pid").read_text()))
    kill(process_of(worker))


def judged_by(assay, place, count):
    return lambda: sum(w["judged"] for w in workers(assay, place)) >= count


@pytest.mark.thorough
def test_slurm_run_over_a_folder_survives_a_node_and_its_controller(assay, candidates, slurm):
    folder = candidates(18)
    environment = {"SLURM_CONF": str(slurm / "slurm.conf")}
    call = arguments(folder, "--slurm", "--nodes", "3", "--lease", "6")
    place = folder / "queue"
    controller = assay.start(*call, **environment)
    lose_node(slurm, wait_for(90, busy(assay, place))[0])
    wait_for(120, judged_by(assay, place, 4))
    controller.kill()
    controller.communicate()
    again = assay(*call, timeout=400, **environment)
    assert again.code == GOOD, again
    assert outcomes(folder) == {sample: expected(sample) for sample in range(18)}


@pytest.mark.thorough
def test_slurm_run_over_a_database_survives_node_controller_and_server(
    assay, candidates, slurm, server
):
    folder = candidates(60)
    environment = {"SLURM_CONF": str(slurm / "slurm.conf")}
    url = server.database("run")
    options = ("--slurm", "--nodes", "3", "--lease", "6", "--queue", url, "--archive", url)
    call = arguments(folder, *options)
    controller = assay.start(*call, **environment)
    lose_node(slurm, wait_for(90, busy(assay, url))[0])
    wait_for(120, judged_by(assay, url, 10))
    server.restart()
    wait_for(120, judged_by(assay, url, 20))
    controller.kill()
    controller.communicate()
    time.sleep(2)
    again = assay(*call, timeout=400, **environment)
    assert again.code == GOOD, again
    assert 0 < len(again.out.splitlines()) < 60, "it goes on where the first one was"
    alone = candidates(60, "alone")
    assert assay(*arguments(alone, "--devices", "cpu"), timeout=300).code == GOOD
    assert outcomes(folder) == outcomes(alone)
    assert outcomes(folder) == {sample: expected(sample) for sample in range(60)}
    ends = "SELECT state, count(*), count(DISTINCT work) FROM assay.ends GROUP BY state"
    assert server.sql(ends, "run") == "judged|60|60"
    verdicts = "SELECT count(*), count(DISTINCT name) FROM assay.records WHERE kind = 'verdict'"
    assert server.sql(verdicts, "run") == "60|60"
    verified = assay("archive", "verify", "--archive", url)
    assert verified.code == GOOD, verified


def program(folder, name, text):
    path = folder / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/bin/bash\n" + text)
    path.chmod(0o755)
    return str(path.parent) + ":" + os.environ["PATH"]


def test_words_of_slurm_reach_the_user(assay, candidates, tmp_path):
    folder = candidates(1)
    program(tmp_path, "squeue", "exit 0\n")
    program(tmp_path, "scancel", "exit 0\n")
    says = "echo 'sbatch: error: invalid partition: gpus' >&2; exit 1\n"
    path = program(tmp_path, "sbatch", says)
    refused = assay(*arguments(folder, "--slurm", "--partition", "gpus"), PATH=path)
    assert refused.code == USAGE
    assert "invalid partition: gpus" in refused.err


def test_a_second_controller_and_bad_places_are_refused(assay, candidates, tmp_path):
    folder = candidates(1)
    place = tmp_path / "queue"
    first = assay.start(*arguments(folder, "--queue", place))
    wait_for(30, lambda: (folder / "verdicts.jsonl").exists())
    second = assay(*arguments(folder, "--queue", place))
    assert second.code == ENVIRONMENT and "another" in second.err
    first.send_signal(signal.SIGINT)
    assert first.wait(timeout=30) == INTERRUPTED
    assert assay(*arguments(folder, "--queue", folder)).code == USAGE, "it holds candidates"
    assert assay(*arguments(folder, "--queue", "/proc/none")).code == ENVIRONMENT
    assert assay("workers", tmp_path / "nowhere").code == USAGE
