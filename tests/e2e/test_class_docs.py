"""A class run by docs/class.md alone: its commands in their order, from the server to marks.
A step that a student takes on a page (to join) goes through that page's form here."""
import csv
import datetime
import io
import json
import os
import re
import shutil
import signal
import subprocess
import time

import pytest

from conftest import ASSAY, GOOD, NOT_FASTER, ROOT, UNSETTLED, Assay
from served import FORM, Web, form

PAGE = (ROOT / "docs" / "class.md").read_text(encoding="utf-8")
FUSED = ROOT / "kernels" / "softmax" / "fused.cpp"
WITHIN_S = 240


def commands():
    """The blocks of commands between the page's first heading and the next one."""
    part = PAGE.split("## From making it to marks")[1].split("\n## ")[0]
    return [block.strip() for block in re.findall(r"```sh\n(.*?)```", part, re.S)]


class Shell:
    """A person's shell in a folder; what it exports stays."""

    def __init__(self, folder, home):
        self.folder = folder
        self.environment = os.environ | home.environment | {
            "HOME": str(folder), "PATH": f"{ASSAY.parent}:{os.environ['PATH']}"}

    def run(self, text, stdin=""):
        script = f"{text}\nstatus=$?\nenv -0 > .environment\nexit $status"
        done = subprocess.run(["bash", "-c", script], cwd=self.folder, env=self.environment,
                              input=stdin, capture_output=True, text=True, timeout=WITHIN_S)
        kept = (self.folder / ".environment").read_text().split("\0")
        self.environment |= dict(each.split("=", 1) for each in kept if "=" in each)
        return done

    def start(self, text):
        return subprocess.Popen(["bash", "-c", "exec " + text], cwd=self.folder,
                                env=self.environment, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL)


@pytest.mark.thorough
def test_a_class_is_run_by_its_page_alone(tmp_path):
    serve, make, student, worker, promote, marks = commands()
    home = Assay(tmp_path / "home")
    mentor = Shell(tmp_path, home)
    server = mentor.start(serve + " --port 0 --verdict-seconds 2")
    runner = None
    try:
        url = server.stdout.readline().strip()
        web = Web(url)
        deadline = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=100)
        make = make.replace("http://127.0.0.1:8080", url)
        due = f"--deadline {deadline:%Y-%m-%dT%H:%M:%SZ}"
        made = mentor.run(re.sub(r"--deadline \S+", due, make))
        assert made.returncode == 0, made
        links = re.findall(r"http://\S+/join/\S+", made.stdout)
        assert len(links) == 2 and re.search(r"\b1\b", made.stdout), made

        ada = tmp_path / "ada"
        ada.mkdir()
        shutil.copy(FUSED, ada / "mine.cpp")
        shutil.copytree(ROOT / "examples" / "worklog", ada / "match")
        joined = web.ask("POST", links[0].removeprefix(url), form(name="ada"),
                         {"Content-Type": FORM})
        token = re.search(r'class="secret">([0-9a-f]+)<', joined.text).group(1)
        hers = Shell(ada, home)
        hers.environment["URL"] = url
        hers.environment.pop("ASSAY_TOKEN", None)
        keep, submit, send = student.splitlines()
        assert hers.run(keep, token + "\n").returncode == 0
        assert (ada / ".assay-token").stat().st_mode & 0o77 == 0
        judged = hers.run(submit)
        assert judged.returncode in (GOOD, NOT_FASTER, UNSETTLED), judged
        sent = hers.run(send)
        assert sent.returncode in (0, 1), sent

        (tmp_path / "token").write_text(mentor.environment["ASSAY_TOKEN"] + "\n")
        runner = mentor.start(worker)
        listed, promoted = promote.splitlines()
        number = 0
        end = time.monotonic() + WITHIN_S
        while not number and time.monotonic() < end:
            runners = json.loads(mentor.run(listed).stdout)["runners"]
            number = next((each["id"] for each in runners if not each["promoted"]), 0)
            time.sleep(0.5)
        done = mentor.run(promoted.replace("/2/", f"/{number}/"))
        assert json.loads(done.stdout) == {"promoted": True}, done

        graded, show, *files = marks.splitlines()
        finals = []
        # A busy machine may find no time to measure a speed: then there is no finalist.
        is_measured = judged.returncode != UNSETTLED
        while is_measured and not finals and time.monotonic() < end:
            time.sleep(1)
            shown = json.loads(mentor.run(show + " --json").stdout)
            finals = [each for each in shown["finals"] if each["final"]["state"] == "done"]
        given = mentor.run(graded)
        buckets = json.loads(given.stdout)["grade"]["buckets"]
        assert next(each["mark"] for each in buckets if each["key"] == "depth") == 25, given
        for command in files:
            done = mentor.run(command)
            assert done.returncode == 0, done
        (row,) = csv.DictReader(io.StringIO((tmp_path / "sheet.csv").read_text()))
        assert row["student"] == "ada" and row["jobs"] == "1", row
        assert not is_measured or row["finals"].startswith("softmax small"), row
        assert (tmp_path / "kernels-2026.tar.gz").stat().st_size > 1000
    finally:
        for process in (runner, server):
            if process:
                process.send_signal(signal.SIGINT)
                process.communicate(timeout=60)
