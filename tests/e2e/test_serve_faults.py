"""assay serve and what goes wrong around it: processes that end, disks that fill up, time that is
up. Each accepted job ends once, and each fault has one clear message."""
import contextlib
import datetime
import json
import os
import signal
import socket
import subprocess
import time

import pytest

from conftest import GOOD, USAGE, Assay
from served import Web, connected, member, rest, softmax_source, statuses
from small_disk import small_disk
from test_serve import Hall
from test_serve_security import Runner, match_files, packed, sample_verdicts

JOB = {"problem": "softmax", "name": "mine.cpp", "source": softmax_source()}
ENDED = ("done", "failed", "cancelled")


@pytest.fixture
def home(tmp_path):
    return Assay(tmp_path)


@pytest.fixture
def hall(home, tmp_path):
    hall = Hall(home, tmp_path / "hall")
    yield hall
    if hall.process.poll() is None:
        hall.end()


class Asked:
    """A mentor who asks a server, and a runner of the mentor's own (test_serve_security.Runner)."""

    def __init__(self, hall):
        self.web, self.token = Web(hall.url), hall.token
        self.runner = Runner(self, hall.token, "box")

    def api(self, method, path, body=None, token=None):
        reply = self.web.by(token or self.token, method, path, body)
        assert reply.status in (200, 201, 202, 204), (path, reply)
        return reply.json if reply.body else None

    def submit(self, key=""):
        return self.api("POST", "/api/jobs", JOB | {"key": key})["job"]["id"]

    def job(self, job):
        return self.api("GET", f"/api/jobs/{job}")["job"]

    def ends(self, job):
        events = self.api("GET", f"/api/jobs/{job}/events")["events"]
        return [each for each in events if each["event"]["event"] == "ended"]


def verdict_for(runner, taken, number):
    verdict = runner.fit(sample_verdicts()[0], taken)
    return verdict | {"id": f"{number:012x}"}


def test_a_deadline_that_passes_while_a_source_comes_in(hall):
    """The job and the worklog count at the moment when they are whole."""
    asked = Asked(hall)
    now = datetime.datetime.now(datetime.timezone.utc)
    deadline = (now + datetime.timedelta(seconds=5)).strftime("%Y-%m-%dT%H:%M:%SZ")
    made = asked.api("POST", "/api/classes", {"name": "c", "deadline": deadline})["class"]["id"]
    invited = asked.api("POST", f"/api/classes/{made}/invitations", {})
    joined = asked.api("POST", "/api/join", {"code": invited["code"], "name": "ann"})
    bodies = {"/api/jobs": json.dumps(JOB).encode(),
              "/api/worklogs": packed(match_files().items())}
    with contextlib.ExitStack() as stack:
        sending = {}
        for path, body in bodies.items():
            head = (f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{asked.web.port}\r\n"
                    f"Authorization: Bearer {joined['token']}\r\nConnection: close\r\n"
                    f"Content-Length: {len(body)}\r\n\r\n")
            sending[path] = stack.enter_context(connected(asked.web, 20))
            sending[path].sendall(head.encode() + body[:100])
        time.sleep(max(0, 6 - (datetime.datetime.now(datetime.timezone.utc) - now).total_seconds()))
        for path, body in bodies.items():
            sending[path].sendall(body[100:])
            received = rest(sending[path])
            assert statuses(received) == [403], received
            assert b"the deadline of c is over" in received, received
    assert asked.api("GET", "/api/jobs?all=1")["jobs"] == []
    assert asked.api("GET", f"/api/worklogs?class={made}")["worklogs"] == []


def test_a_killed_servers_jobs_end_once(home, hall):
    """Killed with a job at a runner, one in the queue, and an end whose reply nobody got."""
    asked = Asked(hall)
    told, leased, queued = (asked.submit(f"key {i}") for i in range(3))
    first = asked.runner.take()
    verdict = verdict_for(asked.runner, first, 1)
    body = json.dumps({"lease": first["lease"], "verdict": verdict}).encode()
    head = (f"POST /api/runner/jobs/{told}/end HTTP/1.1\r\nHost: 127.0.0.1:{asked.web.port}\r\n"
            f"Authorization: Bearer {hall.token}\r\nContent-Length: {len(body)}\r\n\r\n")
    second = asked.runner.take()
    assert (first["job"]["id"], second["job"]["id"]) == (told, leased)
    with connected(asked.web) as connection:
        connection.sendall(head.encode() + body)
        hall.process.kill()
    hall.process.communicate()

    again = Hall(home, hall.folder)
    try:
        asked = Asked(again)
        assert [asked.submit(f"key {i}") for i in range(3)] == [told, leased, queued]
        # The runner tells its ends again, as long as it got no reply.
        for taken, number in ((first, 1), (second, 2)):
            for _ in range(2):
                ended = asked.runner.end(taken, verdict_for(asked.runner, taken, number))
                assert ended.status == 200 and ended.json["counted"], ended
        third = asked.runner.take()
        assert third["job"]["id"] == queued
        assert asked.runner.end(third, verdict_for(asked.runner, third, 3)).json["counted"]
        late = asked.runner.end(third, verdict_for(asked.runner, third, 4), lease="0" * 32)
        assert late.status == 200 and not late.json["counted"], late
        for job in (told, leased, queued):
            assert asked.job(job)["state"] == "done" and len(asked.ends(job)) == 1
        verdicts = [asked.job(job)["verdict"] for job in (told, leased, queued)]
        assert verdicts == [f"{number:012x}" for number in (1, 2, 3)]
    finally:
        again.end()
    assert home("archive", "verify", "--archive", hall.folder / "archive.sqlite").code == GOOD


@pytest.mark.thorough
def test_a_runner_that_vanishes_loses_its_job(hall):
    """Silent for a minute. src/serve/jobs_test.cc has the same with a clock of its own."""
    asked = Asked(hall)
    job = asked.submit()
    taken = asked.runner.take()
    end = time.monotonic() + 90
    while asked.job(job)["state"] == "running" and time.monotonic() < end:
        time.sleep(2)
    assert asked.job(job)["state"] == "queued"
    events = asked.api("GET", f"/api/jobs/{job}/events")["events"]
    assert events[-1]["event"] == {"event": "requeued", "why": "its runner fell silent"}
    late = asked.runner.end(taken, verdict_for(asked.runner, taken, 1))
    assert late.status == 200 and not late.json["counted"], late
    other = Runner(asked, hall.token, "another box")
    taken = other.take()
    assert other.end(taken, verdict_for(other, taken, 2)).json["counted"]
    assert len(asked.ends(job)) == 1 and asked.job(job)["attempts"] == 2


def test_a_runner_that_is_killed_gives_way_to_the_next(hall, home, tmp_path):
    """A real runner, killed with a job in its hands: what it has is judged again later, and the
    queue goes on by another one."""
    asked = Asked(hall)
    (tmp_path / "token").write_text(hall.token)
    first, second = asked.submit(), asked.submit()
    runner = home.start("worker", "--server", hall.url, "--token-file", tmp_path / "token",
                        "--device", "cpu", "--name", "killed")
    try:
        end = time.monotonic() + 60
        while asked.job(first)["state"] == "queued" and time.monotonic() < end:
            time.sleep(0.2)
        assert asked.job(first)["runner"] == "killed"
    finally:
        os.killpg(runner.pid, signal.SIGKILL)
        runner.communicate()
    taken = asked.runner.take()
    assert taken["job"]["id"] == second
    assert asked.runner.end(taken, verdict_for(asked.runner, taken, 1)).json["counted"]
    assert asked.job(first)["state"] == "running" and asked.ends(first) == []
    # Its author need not wait.
    assert asked.api("DELETE", f"/api/jobs/{first}")["job"]["state"] == "cancelled"
    assert len(asked.ends(first)) == 1


def test_a_problem_that_does_not_fit_stops_no_runner(hall, home, tmp_path):
    """One ordinary submission, `softmax --size large`, stopped a runner for good."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if memory > 120e9:
        pytest.skip("the problem fits this machine")
    asked = Asked(hall)
    (tmp_path / "token").write_text(hall.token)
    large = asked.api("POST", "/api/jobs", JOB | {"size": "large"})["job"]["id"]
    small = asked.api("POST", "/api/jobs", JOB | {"size": "tiny"})["job"]["id"]
    runner = home.start("worker", "--server", hall.url, "--token-file", tmp_path / "token",
                        "--device", "cpu", "--name", "small")
    try:
        end = time.monotonic() + 200
        while asked.job(small)["state"] not in ENDED and time.monotonic() < end:
            time.sleep(0.5)
        job = asked.job(large)
        assert job["state"] == "failed" and job["attempts"] == 1, job
        assert "needs about" in job["failure"], job
        assert asked.job(small)["state"] == "done" and runner.poll() is None
    finally:
        runner.send_signal(signal.SIGINT)
        runner.communicate(timeout=60)


def test_a_full_disk_loses_nothing_and_says_so(home, tmp_path):
    with small_disk(tmp_path / "disk", "8m") as disk:
        hall = Hall(home, disk / "hall")
        try:
            asked = Asked(hall)
            kept = asked.submit("kept")
            taken = asked.runner.take()
            with contextlib.suppress(OSError), open(disk / "filler", "wb") as filler:
                while True:
                    filler.write(b"x" * 4096)
                    filler.flush()
            refused = asked.web.by(hall.token, "POST", "/api/jobs",
                                   JOB | {"source": JOB["source"] + "//" + "x" * 900_000})
            # The server's own words name its folders: they are for who runs it.
            assert refused.status == 503 and "try again later" in refused.text, refused
            assert str(disk) not in refused.text
            ended = asked.runner.end(taken, verdict_for(asked.runner, taken, 1))
            assert ended.status == 503 or ended.json["counted"], ended
            # Requests that need no room go on.
            for path in ("/", "/jobs", f"/jobs/{kept}", "/api/board", "/machine"):
                assert asked.web.by(hall.token, "GET", path).status == 200
            (disk / "filler").unlink()
            assert asked.submit("kept") == kept
            ended = asked.runner.end(taken, verdict_for(asked.runner, taken, 1))
            assert ended.json["counted"], ended
            assert asked.job(kept)["state"] == "done" and len(asked.ends(kept)) == 1
            later = asked.submit("later")
            assert asked.job(later)["state"] == "queued"
            board = asked.api("GET", "/api/verdicts/000000000001")
            assert board["verdict"]["id"] == "000000000001"
        finally:
            err = hall.end()
        assert "the disk is full; make room" in err, err
        verified = home("archive", "verify", "--archive", disk / "hall" / "archive.sqlite")
        assert verified.code == GOOD, verified


def test_two_servers_on_one_archive(home, hall, tmp_path):
    second = home("serve", hall.folder, "--port", "0")
    assert second.code == USAGE and second.err.count("served by another process") == 1
    # By another folder whose archive is the first one's, they take turns: each shows both verdicts.
    other = tmp_path / "other"
    other.mkdir()
    (other / "archive.sqlite").symlink_to(hall.folder / "archive.sqlite")
    beside = Hall(home, other)
    try:
        both = [Asked(hall), Asked(beside)]
        for turn in range(3):
            for number, asked in enumerate(both):
                asked.submit()
                taken = asked.runner.take()
                verdict = verdict_for(asked.runner, taken, 2 * turn + number + 1)
                assert asked.runner.end(taken, verdict).json["counted"]
        for asked in both:
            for number in range(1, 7):
                asked.api("GET", f"/api/verdicts/{number:012x}")
            asked.api("GET", "/api/board")
    finally:
        beside.end()
    assert home("archive", "verify", "--archive", hall.folder / "archive.sqlite").code == GOOD


def test_a_port_that_is_taken_and_a_folder_that_is_none(home, hall, tmp_path):
    port = hall.url.rsplit(":", 1)[1]
    taken = home("serve", tmp_path / "other", "--port", port)
    assert taken.code == USAGE and "give another one, or 0 for any" in taken.err
    (tmp_path / "file").write_text("x")
    none = home("serve", tmp_path / "file", "--port", "0")
    assert none.code == USAGE and "choose another folder" in none.err
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "serve.sqlite").write_bytes(b"no database" * 1000)
    broken = home("serve", tmp_path / "broken", "--port", "0")
    assert broken.code != GOOD and "serve.sqlite" in broken.err and "Traceback" not in broken.err
