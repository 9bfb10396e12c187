"""The manual as a web site: each link leads somewhere, and each page is in the navigation."""

import html.parser
import json
import shutil
import subprocess
import sys
import urllib.parse

import pytest

from conftest import ROOT


class Page(html.parser.HTMLParser):
    """The links of a page, and the places in it that links can name."""

    def __init__(self, text):
        super().__init__()
        self.links, self.places = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src") and value is not None:
                self.links.append(value)
            if name in ("id", "name") and value:
                self.places.add(value)


def broken_links(site):
    """'PAGE: LINK' for each link within the site that leads nowhere."""
    pages = {
        path: Page(path.read_text(encoding="utf-8"))
        for path in site.rglob("*.html")
        if path.name != "404.html"  # its links begin at the server's root
    }
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = path
            if parts.path:
                target = (path.parent / urllib.parse.unquote(parts.path)).resolve()
            place = urllib.parse.unquote(parts.fragment)
            there = target.is_file() and site in target.parents
            if there and place and target in pages:
                there = place in pages[target].places
            if not there:
                broken.append(f"{path.relative_to(site)}: {link}")
    return sorted(set(broken))


def test_broken_links_are_found(tmp_path):
    site = tmp_path.resolve()
    (site / "a.html").write_text(
        '<h1 id="top">A</h1><a href="b.html#here">1</a><a href="#top">2</a>'
        '<a href="b.html#no">3</a>'
        '<img src="gone.svg"><a href="https://example.org/">4</a><a href="../outside.html">5</a>'
    )
    (site / "b.html").write_text('<p id="here">B</p>')
    found = ["../outside.html", "b.html#no", "gone.svg"]
    assert broken_links(site) == [f"a.html: {link}" for link in found]


def paths_of(nav):
    """The pages of a navigation as mkdocs takes it."""
    for entry in nav:
        for value in entry.values():
            yield from [value] if isinstance(value, str) else paths_of(value)


@pytest.fixture(scope="module")
def laid_out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site").resolve()
    subprocess.run([sys.executable, ROOT / "scripts" / "site.py", folder], check=True, timeout=60)
    return folder


def test_each_document_is_in_the_navigation_once(laid_out):
    nav = list(paths_of(json.loads((laid_out / "mkdocs.yml").read_text())["nav"]))
    assert len(nav) == len(set(nav))
    pages = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md")}
    examples = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("examples/*/README.md")}
    roots = {"README.md", "AGENTS.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"}
    assert pages | examples | roots | {"skills/assay/SKILL.md"} <= set(nav)


@pytest.mark.thorough
@pytest.mark.skipif(not shutil.which("mkdocs"), reason="needs mkdocs-material")
def test_each_link_leads_somewhere(laid_out):
    command = ["mkdocs", "--quiet", "build", "--strict", "--config-file", laid_out / "mkdocs.yml"]
    subprocess.run([*command, "--site-dir", laid_out / "site"], check=True, timeout=300)
    assert broken_links(laid_out / "site") == []
