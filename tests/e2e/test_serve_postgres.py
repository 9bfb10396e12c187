"""assay serve with its archive in a real PostgreSQL."""
import pathlib
import tempfile
import time

import postgres_server
import pytest

from conftest import GOOD, USAGE
from served_hall import Hall, source

pytestmark = pytest.mark.skipif(
    postgres_server.programs() is None, reason="PostgreSQL's server is not installed"
)


def test_a_server_keeps_its_archive_in_a_database(assay):
    # Not below pytest's folder, which the server's user cannot enter; a socket's path is short.
    with tempfile.TemporaryDirectory() as place:
        pathlib.Path(place).chmod(0o755)
        with postgres_server.server(pathlib.Path(place) / "server") as running:
            serve_from(assay, running)


def serve_from(assay, running):
    url = running.database("hall")
    more = ("--archive", url, "--devices", "cpu", "--verdict-seconds", "1")
    hall = Hall(assay, assay.home / "hall", *more)
    job = {"problem": "softmax", "size": "tiny", "name": "mine.cpp", "source": source()}
    status, reply = hall.ask("POST", "/api/jobs", job)
    assert status == 202, reply
    running.restart()
    end = time.monotonic() + 120
    ended = None
    while ended is None and time.monotonic() < end:
        status, reply = hall.ask("GET", "/api/jobs")
        if status == 200 and reply["jobs"][0]["state"] == "done":
            ended = reply["jobs"][0]
        time.sleep(0.5)
    assert ended, reply
    status, read = hall.ask("GET", f"/api/verdicts/{ended['verdict']}")
    assert status == 200 and read["source"] == source(), read
    assert "mentor" in hall.ask("GET", "/")[1]
    hall.end()
    assert not (hall.folder / "archive.sqlite").exists()
    shown = assay("archive", "show", ended["verdict"], "--archive", url)
    assert shown.code == GOOD and "mine.cpp" in shown.out, shown
    assert assay("archive", "verify", "--archive", url).code == GOOD
    without = assay("serve", hall.folder, "--port", "0")
    assert without.code == USAGE and "give it by --archive" in without.err
    other = assay("serve", hall.folder, "--port", "0", "--archive", running.database("other"))
    assert other.code == USAGE and "remove" in other.err
