"""The server's pages in a browser, from committed results: light, dark and on a phone, under the
policy that the server sends. Needs chromium, node, and `npm ci` in tests/browser.
"""

import json
import shutil
import subprocess

import pytest

from conftest import ASSAY, ROOT

BROWSER = ROOT / "tests" / "browser"
PRINTER = ASSAY.parent / "tests" / "print_sample_pages"

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(
        not (BROWSER / "node_modules").exists()
        or not shutil.which("node")
        or not shutil.which("chromium")
        or not PRINTER.exists(),
        reason="needs chromium, node, npm ci in tests/browser, and print_sample_pages",
    ),
]

FIRST_LOAD_BYTES_MAX = 150_000  # compressed


@pytest.fixture(scope="module")
def views(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    pictures = tmp_path_factory.mktemp("pictures")
    subprocess.run([str(PRINTER), str(folder)], check=True, timeout=60)
    run = subprocess.run(
        ["node", str(BROWSER / "pages.mjs"), str(folder), str(pictures)],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return [json.loads(line) for line in run.stdout.splitlines()]


def test_pages_are_good_everywhere(views):
    looked = [view for view in views if view["page"] != "dial"]
    assert len(looked) >= 3 * 25
    for view in looked:
        assert view["violations"] == [] and view["errors"] == [], view
        assert not view["wide"] and view["headings"] == 1, view
        assert view["compressed"] < FIRST_LOAD_BYTES_MAX, view


def test_the_table_follows_the_dial(views):
    (dial,) = [view for view in views if view["page"] == "dial"]
    assert dial["first_stop"] == "To the content"
    assert dial["shown"] == "2.00×" and dial["kept_focus"]
    assert dial["before"] != dial["after"]
    assert dial["after"] == dial["without"]
