"""Clients of a server: assay worker --server, assay submit, assay rejudge, with real judgements."""
import json
import os
import signal
import subprocess
import time

import pytest

from conftest import ENVIRONMENT, GOOD, INTERRUPTED, SOFTMAX_BODY, USAGE, WRONG, fits
from job_server import TOKEN, JobServer

CHECK = {"correctness_only": True, "threads": 1}
SLEEPLESS = "for (volatile int i = 0;; i = i + 1) {}"


def source(body):
    head = "#include <assay/kernel.h>\n#include <cmath>\n"
    arguments = "assay::Tensor<const float, 2> x, assay::Tensor<float, 2> y"
    return f"{head}ASSAY_KERNEL({arguments}) {{{body}}}\n"


@pytest.fixture
def token(write):
    return write("token", TOKEN + "\n")


@pytest.fixture
def good(write):
    return write("good.cpp", source(SOFTMAX_BODY))


@pytest.fixture
def runner(assay, token):
    """Starts a runner for a server; all end with the test."""
    started = []

    def start(server):
        arguments = ["worker", "--server", server.url, "--token-file", token, "--device", "cpu"]
        started.append(assay.start(*arguments, "--name", "box"))
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def stop(process):
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == INTERRUPTED, err
    return err


def kept(assay):
    return list((assay.home / "state" / "assay" / "runner").glob("*/*.json"))


def children(process):
    found = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True
    )
    return [int(pid) for pid in found.stdout.split()]


def test_a_submitted_candidate_is_judged_shown_and_judged_again(assay, good, write, token, runner):
    bad = write("bad.cpp", source(SOFTMAX_BODY.replace("/= sum", "/= 2 * sum")))
    with JobServer(CHECK) as server:
        to_server = ["--server", server.url, "--token-file", token]
        process = runner(server)
        shown = assay("submit", "softmax", good, "--size", "tiny", *to_server, "-v")
        assert shown.code == GOOD and "correct" in shown.out, shown
        verdict = server.jobs[0]["verdict"]
        fits(verdict, "verdict")
        assert f"{server.url}/verdicts/{verdict['id']}" in shown.out, shown
        assert "job 1: place 1" in shown.err, shown
        # A runner tells of a stage once in a while, and a judgement may be over before that; a
        # client prints the latest of those that came at once, and none if the end came with them.
        events = [each["event"] for each in server.jobs[0]["events"]]
        stages = [event["text"] for event in events if "text" in event]
        told = [line for line in shown.err.splitlines() if "job 1: " not in line]
        assert all(any(stage in line for stage in stages) for line in told), (stages, shown)
        assert server.takes[0]["runner"] == "box" and server.takes[0]["device"] == "cpu"

        wrong = assay("submit", "softmax", bad, "--size", "tiny", *to_server, "--json")
        assert wrong.code == WRONG and wrong.verdict["outcome"] == "wrong", wrong
        status = assay("submit", "--status", "2", *to_server)
        assert status.code == WRONG, status
        err = stop(process)
        assert "job 1: correct" in err and "job 2: wrong" in err, err
        assert [job for job, _ in server.ends] == [1, 2] and not kept(assay)

        url = f"{server.url}/verdicts/{verdict['id']}"
        again = assay("rejudge", url, "--token-file", token, "--json")
        assert again.code == GOOD, again
        fits(again.verdict, "rejudge")
        assert again.verdict["agreement"] == "agrees"
        assert again.verdict["here"]["id"] != verdict["id"]
        server.jobs[0]["asked"]["source"] += "\n// changed\n"
        changed = assay("rejudge", url, "--token-file", token)
        assert changed.code == USAGE and "its hash differs" in changed.err, changed


def test_a_result_outlives_the_runner_that_made_it(assay, good, token, runner):
    with JobServer(CHECK) as server:
        to_server = ["--server", server.url, "--token-file", token]
        server.end_status = 503
        told = assay("submit", "softmax", good, "--size", "tiny", *to_server, "--no-wait")
        assert told.code == GOOD and "job 1  queued, place 1" in told.out, told
        process = runner(server)
        server.wait(lambda: any(request.endswith("/end") for request in server.requests))
        assert len(kept(assay)) == 1
        assert "are told when a runner for this server starts again" in stop(process)
        assert len(kept(assay)) == 1 and server.jobs[0]["state"] == "running"
        server.end_status = 200
        process = runner(server)
        server.wait(lambda: server.jobs[0]["state"] == "done")
        assert server.jobs[0]["verdict"]["outcome"] == "correct"
        stop(process)
        assert not kept(assay) and server.jobs[0]["attempts"] == 1


def test_ctrl_c_gives_the_job_back_and_leaves_nothing(assay, write, token, runner, leftovers):
    endless = write("endless.cpp", source(SLEEPLESS))
    with JobServer(CHECK | {"timeout_s": 600}) as server:
        to_server = ["--server", server.url, "--token-file", token]
        assay("submit", "softmax", endless, "--size", "tiny", *to_server, "--no-wait")
        process = runner(server)
        server.wait(lambda: any("correctness" in str(e) for e in server.jobs[0]["events"]))
        err = stop(process)
        assert "job 1: given back" in err, err
        assert server.jobs[0]["state"] == "queued" and not kept(assay)
        assert not leftovers()

        # A killed worker costs one repeat; a cancelled job ends at once.
        process = runner(server)
        count = len(server.jobs[0]["events"])
        server.wait(lambda: any("correctness" in str(e) for e in server.jobs[0]["events"][count:]))
        for pid in children(process):
            os.kill(pid, signal.SIGKILL)
        count = len(server.jobs[0]["events"])
        server.wait(lambda: any("correctness" in str(e) for e in server.jobs[0]["events"][count:]))
        assert server.jobs[0]["attempts"] == 2
        cancelled = assay("submit", "--cancel", "1", *to_server)
        assert cancelled.code == GOOD and "cancelled" in cancelled.out, cancelled
        server.wait(lambda: len(server.ends) == 2)
        assert "the server wants it no more" in stop(process)
        assert not leftovers()


def test_ctrl_c_leaves_a_submitted_job_to_the_server(assay, good, token):
    with JobServer() as server:
        to_server = ["--server", server.url, "--token-file", token]
        process = assay.start("submit", "softmax", good, "--size", "tiny", *to_server)
        server.wait(lambda: any(request == "GET /api/jobs/1" for request in server.requests))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        assert process.returncode == INTERRUPTED, err
        assert f"assay submit --status 1 --server {server.url}" in err, err
        assert server.jobs[0]["state"] == "queued"
        shown = assay("submit", "--status", "1", *to_server, "--json")
        assert shown.code == GOOD and json.loads(shown.out)["place"] == 1, shown
        server.full = True
        full = assay("submit", "softmax", good, *to_server)
        assert full.code == ENVIRONMENT and "your quota is spent" in full.err, full
        assert "3600 s" in full.err, full


def test_what_is_wrong_is_told_with_its_remedy(assay, good, token):
    with JobServer() as server:
        for words, said in (
            (["submit", "softmax", good, "--server", server.url], "--token-file"),
            (["worker", "--server", server.url], "--token-file"),
            (["submit", "softmax", good, "--server", "http://a.example"], "use https"),
            (["worker", "--server", "http://a.example"], "use https"),
            (["rejudge", "http://a.example/verdicts/3f2a"], "use https"),
            (["rejudge", server.url], "the URL of a verdict"),
            (["submit", "--server", server.url, "--token-file", token], "PROBLEM"),
            (["worker", "--name", "box"], "--server"),
        ):
            run = assay(*words)
            assert run.code == USAGE and said in run.err, (words, run)
    begin = time.monotonic()
    run = assay("rejudge", server.url + "/verdicts/3f2a")  # nobody listens any more
    assert run.code == ENVIRONMENT and "cannot reach" in run.err, run
    assert time.monotonic() - begin < 20
