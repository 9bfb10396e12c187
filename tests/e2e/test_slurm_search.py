"""assay search and assay serve on real Slurm nodes of this machine."""
import json
import signal
import subprocess
import time

import pytest

from conftest import GOOD, INTERRUPTED, NOT_FASTER, SOFTMAX, USAGE
from served_hall import Hall, source
from test_search import BUDGET_ENDED, SOURCE, records
from test_slurm import busy, kill, process_of, slurm, wait_for

assert slurm  # the fixture

ENDED = (GOOD, NOT_FASTER, BUDGET_ENDED)
CLUSTER = ("--slurm", "--nodes", "2", "--lease", "4")


def search_of(assay, *more):
    kernel = assay.home / "kernel.cpp"
    kernel.write_text(SOURCE)
    asked = ["--size", "tiny", "--set", "ROWS=8", "--from", kernel, "--budget", "evals=12"]
    asked += ["--seed", "3", "--finalists", "1", "--verdict-seconds", "1", "-q", "--jsonl"]
    return ("search", SOFTMAX, *asked, *more)


def jobs_of_slurm():
    states = "--states=PENDING,RUNNING"
    listed = subprocess.run(["squeue", "--noheader", states], capture_output=True, text=True)
    return listed.stdout


def results_of(assay):
    return [line for line in records(assay) if line["kind"] == "result"]


def begun(process):
    """The id of the search that a process runs, and the place of its queue."""
    event = json.loads(process.stdout.readline())
    assert event["event"] in ("begun", "resumed"), event
    return event["search"]


def place_of(assay, search):
    return assay.home / "state" / "assay" / "searches" / search / "queue"


def check_records(assay, events):
    """As those of a search on one machine: a verdict for each step; a kill costs nothing."""
    results = [line["result"] for line in results_of(assay)]
    lost = [each["cost"]["evaluations"] for each in results if each.get("lost")]
    assert sum(lost) == 0, lost
    done = [line for line in results_of(assay)
            if not line["result"].get("released") and not line["result"].get("lost")]
    assert len({line["name"] for line in done}) == len(done)
    duplicates = [line for line in done if "duplicate_of" in line["result"]]
    verdicts = [line for line in records(assay) if line["kind"] == "verdict"]
    assert len(verdicts) == len(done) - len(duplicates)
    assert events[-1]["spent"]["evaluations"] == len(verdicts)
    outcomes = events[-1]["outcomes"]
    assert sum(outcomes.values()) == 4 and 1 <= outcomes["wrong"] <= 2, outcomes
    assert assay("archive", "verify").code == GOOD
    assert assay("search", "--replay").code == GOOD


def test_a_search_is_judged_by_slurm(assay, slurm):
    environment = {"SLURM_CONF": str(slurm / "slurm.conf")}
    asked = [each if each != "evals=12" else "evals=1" for each in search_of(assay, *CLUSTER)]
    run = assay(*asked, **environment)
    assert run.code in ENDED, run
    assert [line["kind"] for line in records(assay)].count("verdict") == 1
    assert jobs_of_slurm() == "", "the array goes with the search"
    bad = assay(*search_of(assay, *CLUSTER, "--devices", "cuda:0"))
    assert bad.code == USAGE and "--gres says how many" in bad.err


@pytest.mark.thorough
def test_a_search_goes_on_after_ctrl_c(assay, slurm):
    environment = {"SLURM_CONF": str(slurm / "slurm.conf")}
    first = assay.start(*search_of(assay, *CLUSTER), **environment)
    place = place_of(assay, begun(first))
    wait_for(60, busy(assay, place))
    first.send_signal(signal.SIGINT)
    _, err = first.communicate(timeout=40)
    assert first.returncode == INTERRUPTED, err
    assert "with the same options of the cluster" in err
    assert jobs_of_slurm() == "", "the array goes with the search"
    again = assay("search", "--resume", "--jsonl", "-q", *CLUSTER, **environment)
    assert again.code in ENDED, again
    check_records(assay, [json.loads(line) for line in again.out.splitlines()])
    assert jobs_of_slurm() == ""


@pytest.mark.thorough
def test_a_search_survives_a_pilot_and_its_controller(assay, slurm):
    environment = {"SLURM_CONF": str(slurm / "slurm.conf")}
    first = assay.start(*search_of(assay, *CLUSTER), **environment)
    place = place_of(assay, begun(first))
    kill(process_of(wait_for(60, busy(assay, place))[0]))
    wait_for(90, lambda: results_of(assay))
    first.kill()
    first.communicate()
    time.sleep(10)  # pilots go on
    again = assay("search", "--resume", "--jsonl", "-q", *CLUSTER, timeout=200, **environment)
    assert again.code in ENDED, again
    check_records(assay, [json.loads(line) for line in again.out.splitlines()])
    assert jobs_of_slurm() == ""


def state_of(hall, job):
    return hall.ask("GET", f"/api/jobs/{job}")[1]["job"]["state"]


def submit(hall, number):
    text = source() + f"// {number}\n"
    job = {"problem": "softmax", "size": "tiny", "name": "mine.cpp", "source": text}
    status, reply = hall.ask("POST", "/api/jobs", job)
    assert status == 202, reply
    return reply["job"]["id"]


def test_a_servers_jobs_are_judged_by_pilots_that_come_and_go(assay, slurm, monkeypatch):
    monkeypatch.setitem(assay.environment, "SLURM_CONF", str(slurm / "slurm.conf"))
    more = (*CLUSTER, "--idle-stop", "2", "--verdict-seconds", "1")
    hall = Hall(assay, assay.home / "hall", *more)
    try:
        assert jobs_of_slurm() == "", "no pilot without a job"
        job = submit(hall, 0)
        wait_for(60, busy(assay, hall.folder / "queue"))
        # The server dies while a pilot judges, and the next one has the same job.
        hall.process.kill()
        hall.process.communicate()
        hall = Hall(assay, hall.folder, *more)
        wait_for(90, lambda: state_of(hall, job) == "done")
        reply = hall.ask("GET", f"/api/jobs/{job}")[1]["job"]
        assert reply["attempts"] == 1 and reply["runner"] == "slurm cpu", reply
        wait_for(60, lambda: jobs_of_slurm() == "")
    finally:
        hall.end()
    assert assay("archive", "verify", "--archive", hall.folder / "archive.sqlite").code == GOOD


@pytest.mark.thorough
def test_a_server_loses_no_job_by_a_pilots_death_or_its_own_end(assay, slurm, monkeypatch):
    monkeypatch.setitem(assay.environment, "SLURM_CONF", str(slurm / "slurm.conf"))
    more = (*CLUSTER, "--verdict-seconds", "1")
    hall = Hall(assay, assay.home / "hall", *more)
    jobs = [submit(hall, number) for number in range(4)]
    kill(process_of(wait_for(60, busy(assay, hall.folder / "queue"))[0]))
    wait_for(120, lambda: any(state_of(hall, job) == "done" for job in jobs))
    hall.end()
    assert jobs_of_slurm() == "", "the array goes with the server"
    hall = Hall(assay, hall.folder, *more)
    try:
        states = {state_of(hall, job) for job in jobs}
        assert states <= {"queued", "running", "done"}, states
        wait_for(200, lambda: all(state_of(hall, job) == "done" for job in jobs))
        verdicts = [line for line in exported(assay, hall) if line["kind"] == "verdict"]
        assert len(verdicts) == 4
    finally:
        hall.end()


def exported(assay, hall):
    run = assay("archive", "export", "-", "--archive", hall.folder / "archive.sqlite")
    assert run.code == GOOD, run
    return [json.loads(line) for line in run.out.splitlines()]
