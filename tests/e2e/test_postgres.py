"""The archive in a real PostgreSQL: recorded there, read there, copied there and back."""
import json
import subprocess

import postgres_server
import pytest
from conftest import ASSAY, CORRECT, GOOD, ROOT, USAGE

pytestmark = pytest.mark.skipif(
    postgres_server.programs() is None, reason="PostgreSQL's server is not installed"
)


@pytest.fixture(scope="module")
def server():
    # Not below pytest's folder, which the server's user cannot enter.
    with postgres_server.temporary() as running:
        yield running


def call(*words):
    ran = subprocess.run(
        [ASSAY, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
        check=False,
    )
    return ran.returncode, ran.stdout, ran.stderr


def test_a_verdict_is_recorded_in_a_database_and_copied(server, tmp_path):
    url = server.database("judged")
    candidate = ROOT / "kernels" / "softmax" / "naive.cpp"
    code, out, err = call(
        "judge", "softmax", candidate, "--correctness-only", "--archive", url, "--size", "tiny"
    )
    assert code in CORRECT, out + err
    assert "not recorded" not in err
    code, listed, err = call("archive", "list", "--archive", url, "--kind", "verdict")
    assert code == GOOD and "softmax" in listed, err
    verdict = listed.split()[3]
    code, shown, err = call("archive", "show", verdict, "--archive", url)
    assert code == GOOD and "naive.cpp" in shown, err
    copy = tmp_path / "copy.sqlite"
    code, out, err = call("archive", "copy", url, copy)
    assert code == GOOD, err
    assert "whole" in out and "0 were there" in out
    code, out, err = call("archive", "copy", url, copy)
    assert code == GOOD and out.startswith("copied 0 records"), err
    back = server.database("back")
    assert call("archive", "copy", copy, back)[0] == GOOD
    heads = {call("archive", "verify", "--archive", place)[1] for place in (url, copy, back)}
    assert len(heads) == 1
    for name in ("first.jsonl", "second.jsonl"):
        place = url if name == "first.jsonl" else copy
        assert call("archive", "export", tmp_path / name, "--archive", place)[0] == GOOD
    first = (tmp_path / "first.jsonl").read_text()
    assert first == (tmp_path / "second.jsonl").read_text()
    assert json.loads(first.splitlines()[-1])["kind"] == "verdict"


def test_wrong_places_and_roles_are_named_without_a_password(server):
    server.sql("CREATE ROLE reader LOGIN")
    url = server.database("roles")
    wrong = url.replace("owner@", "nobody:secretword@")
    code, out, err = call("archive", "list", "--archive", wrong)
    assert code == USAGE and 'role "nobody" does not exist' in err, err
    assert "secretword" not in out + err
    assert call("archive", "grant", url, "nobody", "--as", "reader")[0] == USAGE
    code, _, err = call("archive", "grant", url, "reader", "--as", "reader")
    assert code == GOOD, err
    as_reader = url.replace("owner@", "reader@")
    code, out, err = call("archive", "list", "--archive", as_reader)
    assert code == GOOD and "no such record" in err, err
    code, out, err = call("archive", "copy", as_reader, as_reader + "&application_name=x")
    assert code == GOOD, err  # nothing is to be written
    code, _, err = call("archive", "grant", url, "reader", "--as", "none")
    assert code == GOOD, err
    code, _, err = call("archive", "list", "--archive", as_reader)
    assert code == USAGE and "assay archive grant" in err, err
