"""assay serve under load, and killed under load: bench/serve_load.py and bench/serve_kills.py in
brief."""
import json
import os
import subprocess
import sys

import pytest

from conftest import ASSAY, ROOT


def run(script, *arguments):
    """The row that a benchmark prints."""
    command = [sys.executable, str(ROOT / "bench" / script), "--program", str(ASSAY), *arguments]
    process = subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, env=os.environ
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return json.loads(process.stdout.splitlines()[0])


def test_streams_pages_and_a_class_that_submits_at_once():
    brief = "--verdicts 2000 --players 50 --streams 40 --rate 20 --seconds 3"
    row = run("serve_load.py", *brief.split())
    assert row["failed"] == 0 and row["streams_alive"] == 40
    assert row["submitted"] == 30 and row["lost"] == 0
    assert row["order_kept"] and row["places_shown"]
    assert row["ended_with_verdict"] > 0
    for page in row["alone"].values():
        assert 0 < page["gzip_bytes"] < page["bytes"] / 2


@pytest.mark.thorough
def test_kills_of_server_and_runners_lose_no_job():
    row = run("serve_kills.py", "--kills", "40", "--workers", "1")
    assert row["faults"] == 0 and row["accepted"] > 0
    assert row["server_kills"] + row["worker_kills"] + row["runner_kills"] >= 40
