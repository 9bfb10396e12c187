"""People before browsers, by tests/browser/drive.mjs: for tests of the server's pages."""
import json
import shutil
import subprocess

import pytest

from conftest import ROOT

FOLDER = ROOT / "tests" / "browser"
NEEDS_BROWSER = pytest.mark.skipif(
    not (FOLDER / "node_modules").exists() or not shutil.which("node")
    or not shutil.which("chromium"),
    reason="needs chromium, node, and npm ci in tests/browser",
)


class Browser:
    """One process of node, for all people of a test."""

    def __init__(self, url, pictures):
        self.url, self.pictures = url, pictures
        pictures.mkdir(exist_ok=True)
        self.process = subprocess.Popen(
            ["node", str(FOLDER / "drive.mjs"), str(pictures)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )

    def ask(self, who, do, **words):
        self.process.stdin.write(json.dumps({"who": who, "do": do, **words}) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline() or '{"fault": "node ended"}')
        assert "fault" not in answer, answer["fault"]
        return answer["ok"]

    def enter(self, who, scripts=True):
        self.ask(who, "enter", root=self.url, scripts=scripts)
        return Person(self, who)

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


class Person:
    """Elements are found by the names that a screen reader tells; `of` is a selector."""

    def __init__(self, browser, who):
        self.browser, self.who = browser, who

    def ask(self, do, **words):
        return self.browser.ask(self.who, do, **words)

    def go(self, to):
        return self.ask("go", to=to)

    def where(self):
        return self.ask("where")

    def read(self, of="main"):
        return self.ask("read", of=of)

    def all(self, of):
        return self.ask("all", of=of)

    def has(self, of):
        return self.ask("has", of=of)

    def wait(self, text):
        """Until a text is on the page."""
        self.ask("wait", text=text)

    def fill(self, label, text):
        self.ask("fill", label=label, text=text)

    def choose(self, label, text):
        self.ask("choose", label=label, text=text)

    def click(self, name, role="button", within=None):
        self.ask("click", role=role, name=name, within=within)

    def follow(self, name, within=None):
        self.click(name, "link", within)

    def look(self, name, brief=False):
        """Pictures of the page, which must be good in every view."""
        seen = self.ask("look", name=name, brief=brief)
        good = {"errors": [], "violations": [], "wide": [], "unreached": [], "headings": 1}
        assert seen == good, (name, seen)

    def sign_in(self, token):
        self.go("/login")
        self.fill("your token", token)
        self.click("Sign in")
