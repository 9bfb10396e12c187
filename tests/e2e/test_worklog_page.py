"""The worklog's pages in a browser: light, dark, on a phone and on paper. Needs chromium, node, and
`npm ci` in tests/browser.
"""

import json
import pathlib
import shutil
import subprocess

import pytest

from conftest import GOOD, ROOT

BROWSER = ROOT / "tests" / "browser"
EXAMPLE = ROOT / "examples" / "worklog"

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(
        not (BROWSER / "node_modules").exists()
        or not shutil.which("node")
        or not shutil.which("chromium"),
        reason="needs chromium, node, and npm ci in tests/browser",
    ),
]


def look(page, folder):
    run = subprocess.run(
        ["node", str(BROWSER / "look.mjs"), str(page), str(folder)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return [json.loads(line) for line in run.stdout.splitlines()]


@pytest.fixture
def match(assay):
    folder = assay.home / "match"
    shutil.copytree(EXAMPLE, folder)
    return folder


@pytest.mark.parametrize("page", ["worklog.html", "present.html", "class.html"])
def test_a_page_is_good_everywhere(assay, match, page, tmp_path):
    place = ["--in", str(match), "--archive", str(tmp_path / "none.sqlite")]
    options = {"worklog.html": ["render"], "present.html": ["render", "--present"]}
    command = options.get(page, ["grade", "--page", str(match / "class.html")])
    run = assay("worklog", *command, *place)
    assert run.code == GOOD, run
    views = look(match / page, tmp_path)
    assert [view["view"] for view in views] == ["light", "dark", "phone"]
    for view in views:
        assert view["violations"] == [] and view["errors"] == [], view
        assert not view["wide"], view
    assert views[0]["first_paint_ms"] < 1000
    assert pathlib.Path(tmp_path / "paper.pdf").read_bytes()[:5] == b"%PDF-"
