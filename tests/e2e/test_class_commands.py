"""assay class, assay worklog submit, assay submit and assay rejudge on a real server."""
import csv
import datetime
import io
import json
import os
import shutil
import subprocess
import tarfile
import time
import urllib.request

import pytest

from conftest import (CORRECT, ENVIRONMENT, GOOD, NOT_FASTER, ROOT, UNSETTLED, USAGE, WRONG, Assay,
                      fits)
from served_hall import Hall, source

FUSED = ROOT / "kernels" / "softmax" / "fused.cpp"
VERDICTS = ROOT / "bench" / "results" / "cpu-2core" / "kernel_verdicts.jsonl"
JUDGES_WITHIN_S = 240


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return Assay(tmp_path_factory.mktemp("class"))


class ClassHall(Hall):
    """A server, and commands that speak to it with a token of their own."""

    def __init__(self, home, folder, *arguments):
        super().__init__(home, folder, *arguments)
        self.home = home

    def call(self, *words, token=None, **keywords):
        path = self.folder / "token"
        path.write_text((token or self.token) + "\n")
        return self.home(*words, "--server", self.url, "--token-file", path, **keywords)

    def make(self, name, *options):
        run = self.call("class", "make", name, *options, "--json")
        assert run.code == GOOD, run
        return json.loads(run.out)

    def join(self, code, name):
        status, joined = self.ask("POST", "/api/join", {"code": code, "name": name})
        assert status == 201, joined
        return joined["token"]

    def get_bytes(self, path, token):
        request = urllib.request.Request(self.url + path)
        request.add_header("Authorization", f"Bearer {token}")
        with urllib.request.urlopen(request, timeout=30) as reply:
            return reply.read()


@pytest.fixture
def serve(home, tmp_path):
    halls = []

    def start(name, *arguments):
        halls.append(ClassHall(home, tmp_path / name, *arguments))
        return halls[-1]

    yield start
    for hall in halls:
        if hall.process.poll() is None:
            hall.end()


@pytest.fixture
def worklog(tmp_path):
    """A copy of the example worklog."""
    return shutil.copytree(ROOT / "examples" / "worklog", tmp_path / "worklog")


def in_seconds(seconds):
    moment = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def recorded_verdict(kernel, identity):
    """A committed verdict on a shipped kernel, under another id."""
    with open(VERDICTS, encoding="utf-8") as lines:
        verdicts = map(json.loads, lines)
        verdict = next(v for v in verdicts if v["candidate"]["path"].endswith(kernel))
    return verdict | {"id": identity}


def run_jobs(hall, *verdicts):
    """The server's own runner, whose judgements were made earlier. Returns its jobs."""
    token = (hall.folder / "runner-token").read_text().strip()
    jobs = []
    for verdict in verdicts:
        asked = {"runner": "recorded", "device": "cpu", "version": "0.1.0", "machine": None}
        status, taken = hall.ask("POST", "/api/runner/take", asked | {"wait_s": 10}, token)
        assert status == 200, taken
        body = {"lease": taken["lease"], "verdict": verdict}
        path = f"/api/runner/jobs/{taken['job']['id']}/end"
        assert hall.ask("POST", path, body, token) == (200, {"counted": True})
        jobs.append(taken["job"])
    return jobs


def test_rights_worklogs_and_marks_of_a_class(serve, worklog, tmp_path):
    hall = serve("hall")
    made = hall.make("kernels", "--students", "2", "--worklogs-a-day", "3")
    number = str(made["class"]["id"])
    assert made["link"] == f"{hall.url}/join/{made['code']}"
    ann, ben = hall.join(made["code"], "ann"), hall.join(made["code"], "ben")
    used_up = hall.ask("POST", "/api/join", {"code": made["code"], "name": "cas"})
    assert used_up[0] in (403, 404, 410), used_up

    # Rights: a stranger, a student.
    for words in (["show"], ["sheet", number], ["export", number], ["invite", number]):
        stranger = hall.call("class", *words, token="0" * 32)
        assert stranger.code == USAGE and "token" in stranger.err, (words, stranger)
    for words in (["make", "own"], ["sheet", number], ["export", number], ["invite", number]):
        student = hall.call("class", *words, token=ann)
        assert student.code == USAGE and student.err.count("\n") == 1, (words, student)
    shown = json.loads(hall.call("class", "show", number, token=ann).out)
    assert {each["name"] for each in shown["members"]} == {"ann", "ben"}
    assert "invitations" not in shown
    missing = hall.call("class", "show", "99")
    assert missing.code == USAGE and "no such class" in missing.err, missing

    # Worklogs: whole, one that another account sent, one with a gap, and one too many.
    whole = hall.call("worklog", "submit", "--in", worklog, token=ann)
    assert whole.code == GOOD and whole.out.endswith("complete\n"), whole
    copied = hall.call("worklog", "submit", "--in", worklog, token=ben)
    assert copied.code == WRONG and "suspicious" in copied.out, copied
    (worklog / "plan.md").write_text("")
    gap = hall.call("worklog", "submit", "--in", worklog, "--json", token=ann)
    assert gap.code in (NOT_FASTER, WRONG), gap
    assert json.loads(gap.out)["worklog"]["uploads"] == 2
    shutil.copy(ROOT / "examples" / "worklog" / "plan.md", worklog)
    assert hall.call("worklog", "submit", "--in", worklog, token=ann).code in (GOOD, WRONG)
    spent = hall.call("worklog", "submit", "--in", worklog, token=ann)
    assert spent.code == ENVIRONMENT and "3 worklogs" in spent.err, spent
    empty = hall.call("worklog", "submit", "--in", tmp_path, token=ann)
    assert empty.code == USAGE and "worklog.toml" in empty.err, empty

    # Marks: a suspicious worklog has no certificate until a mentor lifts it.
    path = f"/api/worklogs/{json.loads(gap.out)['worklog']['id']}"
    assert hall.ask("GET", path + "/certificate.pdf")[0] == 409
    _, read = hall.ask("GET", path)
    keys = [bucket["key"] for bucket in read["grade"]["buckets"]]
    marks = {"revision": 0, "points": {keys[0]: 7}, "note": "clear", "lift": "spoken with both"}
    # These are of the first upload, and two came since.
    assert hall.ask("POST", path + "/grade", marks)[0] == 409
    marks["upload"] = read["worklog"]["uploads"]
    status, graded = hall.ask("POST", path + "/grade", marks)
    assert status == 200, graded
    assert hall.ask("POST", path + "/grade", marks)[0] == 409
    assert hall.ask("POST", path + "/grade", marks, token=ben)[0] == 403
    assert hall.get_bytes(path + "/certificate.pdf", ann).startswith(b"%PDF")
    assert hall.ask("GET", path + "/certificate.pdf", token=ben)[0] == 403


def test_a_class_moves_to_another_server(serve, worklog, tmp_path):
    hall = serve("hall")
    made = hall.make("kernels", "--students", "2")
    number = str(made["class"]["id"])
    ann, ben = hall.join(made["code"], "ann"), hall.join(made["code"], "ben")
    invited = hall.call("class", "invite", number, "--role", "machine")
    assert invited.code == GOOD and "for 1 machine" in invited.out, invited
    model = hall.join(invited.out.split("/join/")[1].split()[0], "model")
    page = (ROOT / "docs" / "class.md").read_text(encoding="utf-8")
    (example,) = [line for line in page.splitlines() if line.startswith("tar ")]
    example = example.replace("match", str(worklog)).replace("URL", hall.url)
    sent = subprocess.run(["bash", "-c", example], env=os.environ | {"TOKEN": model},
                          capture_output=True, text=True, timeout=30, check=True)
    assert json.loads(sent.stdout).get("worklog", {}).get("author") == "model", sent.stdout
    sheet = tmp_path / "sheet.csv"
    assert hall.call("class", "sheet", number, "-o", sheet).code == GOOD
    rows = list(csv.DictReader(io.StringIO(sheet.read_text())))
    assert len(rows) == 3 and any("model" in row.values() for row in rows), rows
    asked = ["submit", "softmax", FUSED, "--size", "small", "--no-wait"]
    assert hall.call(*asked, token=ann).code == GOOD
    run_jobs(hall, recorded_verdict("softmax/fused.cpp", "a" * 12))
    verdict = hall.call("submit", "--status", "1", "--json", token=ann)
    assert verdict.code == GOOD and "a" * 12 in verdict.out, verdict

    file = tmp_path / "kernels.tar.gz"
    exported = hall.call("class", "export", number, "-o", file)
    assert exported.code == GOOD, exported
    with tarfile.open(file) as tar:
        names = tar.getnames()
        content = b"".join(tar.extractfile(each).read() for each in tar if each.isfile())
    assert {"class.json", "rubric.toml", "sheet.csv"} <= set(names), names
    assert not any(token.encode() in content for token in (ann, ben, model, hall.token))
    other = serve("other")
    other.ask("POST", "/api/accounts", {"name": "ann", "role": "student"})
    imported = other.call("class", "import", file)
    assert imported.code == GOOD, imported
    assert "3 members, 1 job and 1 worklog" in imported.out, imported
    assert "the name ann was taken: ann" in imported.out, imported
    again = other.call("class", "import", file)
    assert again.code == USAGE and "import" in again.err, again
    broken = tmp_path / "broken.tar.gz"
    broken.write_bytes(file.read_bytes()[:-200])
    assert other.call("class", "import", broken).code == USAGE
    (copy,) = json.loads(other.call("class", "show").out)["classes"]
    link = other.call("class", "invite", str(copy["id"]), "--for", "ben").out
    ben_again = other.join(link.split("/join/")[1].split()[0], "")
    # The server moves imported verdicts into its archive a moment later.
    for _ in range(50):
        _, board = other.ask("GET", "/api/board?problem=softmax", token=ben_again)
        if board["own_runners"]:
            break
        time.sleep(0.2)
    # Nobody there has seen the judgement: it has no rank.
    (entry,) = board["own_runners"]
    assert entry["verdict"] == "a" * 12 and entry["own_runner"], entry
    assert board["boards"] == [] and board["players"] == []
    assert other.call("class", "sheet", str(copy["id"])).out.count("\n") == 4


def test_a_deadline_hides_closes_and_judges_once_more(serve, worklog):
    hall = serve("hall")
    deadline = in_seconds(8)
    made = hall.make("short", "--students", "2", "--deadline", deadline, "--jobs-a-day", "2")
    ann, ben = hall.join(made["code"], "ann"), hall.join(made["code"], "ben")
    asked = ["submit", "softmax", FUSED, "--size", "small", "--no-wait"]
    assert hall.call(*asked, token=ann).code == GOOD
    slower = ["submit", "softmax", ROOT / "kernels" / "softmax" / "naive.cpp", *asked[3:]]
    assert hall.call(*slower, token=ann).code == GOOD
    spent = hall.call(*asked, token=ann)
    assert spent.code == ENVIRONMENT and "2" in spent.err, spent
    kernels = {"fused.cpp": "b" * 12, "naive.cpp": "c" * 12}
    run_jobs(hall, *(recorded_verdict(f"softmax/{name}", each) for name, each in kernels.items()))
    _, hidden = hall.ask("GET", f"/api/verdicts/{'b' * 12}", token=ben)
    assert hidden["hidden"] and hidden["source"] is None
    assert hall.ask("GET", f"/api/verdicts/{'b' * 12}/bundle", token=ben)[0] == 403
    own = hall.ask("GET", f"/api/verdicts/{'b' * 12}", token=ann)[1]
    assert own["source"] == FUSED.read_text()

    while in_seconds(-1) <= deadline:
        time.sleep(0.2)
    late = hall.call(*asked, token=ben)
    assert late.code == USAGE and "deadline" in late.err, late
    late = hall.call("worklog", "submit", "--in", worklog, token=ben)
    assert late.code == USAGE and "deadline" in late.err, late
    # One final: the best of the two, on the same board.
    (final,) = run_jobs(hall, recorded_verdict("softmax/fused.cpp", "d" * 12))
    assert final["kind"] == "finalist" and final["candidate"]["source"] == FUSED.read_text()
    shown = json.loads(hall.call("class", "show", str(made["class"]["id"])).out)
    (row,) = shown["finals"]
    assert row["account"] == "ann" and row["best"]["verdict"] == "b" * 12, row
    assert row["final"]["verdict"] == "d" * 12 and row["final"]["state"] == "done", row
    _, seen = hall.ask("GET", f"/api/verdicts/{'b' * 12}", token=ben)
    assert seen["source"] == FUSED.read_text() and not seen["hidden"]
    closed = hall.call("class", "invite", str(made["class"]["id"]))
    assert closed.code in (GOOD, USAGE), closed


def test_terms_of_a_bundle_are_those_of_the_record(home, serve):
    folder = home.home / "judged"
    judged = home("judge", "softmax", FUSED, "--size", "tiny", "--one-size", "--correctness-only",
                  "--archive", folder / "archive.sqlite", "--json")
    assert judged.code in CORRECT, judged
    identity = judged.verdict["id"]
    hall = ClassHall(home, folder)
    try:
        status, bundle = hall.ask("GET", f"/api/verdicts/{identity}/bundle")
        assert status == 200, bundle
        assert bundle["terms"] == {"one_size": True, "correctness_only": True}
        assert bundle["problem"]["size"] == "tiny"
        _, board = hall.ask("GET", "/api/board")
        assert board["players"] == []  # nobody submitted it
        again = home("rejudge", f"{hall.url}/verdicts/{identity}", "--token-file",
                     folder / "mentor-token", "--json")
        assert again.code == GOOD, again
        document = json.loads(again.out)
        fits(document, "rejudge")
        assert document["agreement"] == "agrees"
        assert document["here"]["outcome"] == "correct"
    finally:
        hall.end()


@pytest.mark.thorough
def test_a_class_is_judged_by_a_real_runner(serve):
    hall = serve("hall", "--devices", "cpu")
    made = hall.make("real", "--students", "1", "--deadline", in_seconds(45))
    ann = hall.join(made["code"], "ann")
    path = hall.folder / "mine.cpp"
    path.write_text(source())
    run = hall.call("submit", "softmax", path, "--size", "tiny", "--json", token=ann,
                    timeout=JUDGES_WITHIN_S)
    assert run.code in (GOOD, NOT_FASTER, UNSETTLED), run
    first = run.verdict["id"]
    deadline = time.monotonic() + JUDGES_WITHIN_S
    finals = []
    while time.monotonic() < deadline and not (finals and finals[0]["final"]["state"] == "done"):
        time.sleep(1)
        finals = json.loads(hall.call("class", "show", str(made["class"]["id"])).out)["finals"]
    if run.verdict["outcome"] == "unsettled":
        return  # no finalist
    assert finals[0]["best"]["verdict"] == first, finals
    _, final = hall.ask("GET", f"/api/verdicts/{finals[0]['final']['verdict']}")
    # A warm session keeps its seed; each judgement draws values of its own.
    seeds = [{draw["seed"] for draw in verdict["correctness"]["draws"]}
             for verdict in (run.verdict, final["verdict"])]
    assert seeds[0] and not seeds[0] & seeds[1], seeds
    assert final["verdict"]["correctness"]["passed"]
