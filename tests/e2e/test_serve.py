"""assay serve: the server, its own runner, and the examples of its documents."""
import json
import os
import re
import shlex
import signal
import subprocess
import time
import urllib.error
import urllib.request

import pytest

from conftest import GOOD, ROOT, USAGE, Assay
from served_hall import Hall, source

STARTS_WITHIN_S = 60
JUDGES_WITHIN_S = 180


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return Assay(tmp_path_factory.mktemp("serve"))


@pytest.fixture
def hall(home, tmp_path):
    hall = Hall(home, tmp_path / "hall")
    yield hall
    if hall.process.poll() is None:
        hall.end()


def test_a_job_is_judged_by_the_servers_own_runner(home, tmp_path):
    hall = Hall(home, tmp_path / "hall", "--devices", "cpu")
    try:
        job = {"problem": "softmax", "size": "tiny", "name": "mine.cpp", "source": source()}
        status, reply = hall.ask("POST", "/api/jobs", job)
        assert status == 202, reply
        handle = reply["job"]["id"]
        # The stream ends after the job's end.
        request = urllib.request.Request(f"{hall.url}/api/jobs/{handle}/events")
        request.add_header("Authorization", f"Bearer {hall.token}")
        request.add_header("Accept", "text/event-stream")
        with urllib.request.urlopen(request, timeout=JUDGES_WITHIN_S) as stream:
            lines = stream.read().decode().splitlines()
        events = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
        assert [each["event"] for each in events][:2] == ["queued", "taken"]
        assert events[-1]["event"] == "ended" and events[-1]["state"] == "done", events[-1]
        assert any(each["event"] == "progress" for each in events)
        _, read = hall.ask("GET", f"/api/verdicts/{events[-1]['verdict']}")
        assert read["verdict"]["correctness"]["passed"] and read["source"] == source()
        _, page = hall.ask("GET", "/")
        assert "mentor" in page and "</html>" in page
    finally:
        hall.end()
    assert home("archive", "verify", "--archive", hall.folder / "archive.sqlite").code == GOOD


def test_one_server_a_folder_and_no_plain_http_to_others(home, hall):
    second = home("serve", hall.folder, "--port", "0")
    assert second.code == USAGE and "served by another process" in second.err
    far = home("serve", hall.folder, "--host", "0.0.0.0")
    assert far.code == USAGE and "put a proxy with TLS before it" in far.err
    assert home("serve").code == USAGE


def test_a_killed_server_knows_its_jobs(home, tmp_path):
    hall = Hall(home, tmp_path / "hall")
    job = {"problem": "softmax", "name": "mine.cpp", "source": source(), "key": "once"}
    assert hall.ask("POST", "/api/jobs", job)[0] == 202
    hall.process.kill()
    hall.process.communicate()
    again = Hall(home, hall.folder)
    try:
        assert again.token == hall.token
        assert again.ask("POST", "/api/jobs", job)[0] == 200
        _, reply = again.ask("GET", "/api/jobs")
        assert [each["state"] for each in reply["jobs"]] == ["queued"]
    finally:
        again.end()


def test_a_large_source_is_refused_before_it_is_sent(hall):
    body = {"problem": "softmax", "name": "mine.cpp", "source": "x" * 5_000_000}
    with pytest.raises((urllib.error.URLError, ConnectionError)) as refused:
        status, reply = hall.ask("POST", "/api/jobs", body)
        assert status == 413, reply
        raise ConnectionError
    assert refused


def test_the_examples_of_the_documents(hall, tmp_path):
    text = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")
    examples = [line for line in text.splitlines() if line.startswith("curl ")]
    assert len(examples) >= 5
    hall.ask("POST", "/api/runner/take", {"runner": "box", "device": "cpu"})
    hall.ask("POST", "/api/runner/take", {"runner": "second", "device": "cpu"})
    job = {"problem": "softmax", "name": "mine.cpp", "source": source()}
    handle = hall.ask("POST", "/api/jobs", job)[1]["job"]["id"]
    hall.ask("DELETE", f"/api/jobs/{handle}")  # its stream ends
    for example in examples:
        for address in ("https://assay.example.org", "http://127.0.0.1:8080"):
            example = example.replace(address, hall.url)
        example = re.sub(r"/jobs/\d+", f"/jobs/{handle}", example).replace("$TOKEN", hall.token)
        done = subprocess.run([*shlex.split(example), "-sS", "--max-time", "20"],
                              capture_output=True, text=True)
        assert done.returncode == 0, example + done.stderr
        assert '"error"' not in done.stdout, example + done.stdout


def test_the_demonstration_opens_within_five_seconds(home):
    began = time.monotonic()
    process = home.start("serve", "--demo", "--port", "0")
    url = process.stdout.readline().strip()
    with urllib.request.urlopen(url + "/", timeout=30) as reply:
        page = reply.read().decode()
    took_s = time.monotonic() - began
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=STARTS_WITHIN_S)
    assert "softmax" in page and took_s < 5 * float(os.environ.get("ASSAY_SLOWNESS", "1")), took_s
