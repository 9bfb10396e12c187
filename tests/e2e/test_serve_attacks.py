"""Attacks of a student on a class: by runners, leases, spot checks, names and addresses.

Each is one test, on one running server; none may change a rank, a final or another member's job.
"""
import datetime
import hashlib
import itertools
import json
import re
import subprocess
import time

import pytest

from conftest import ASSAY, Assay
from served import FORM, Web, form, member
from test_serve import Hall

PRINTER = ASSAY.parent / "tests" / "print_sample_verdicts"
pytestmark = pytest.mark.skipif(not PRINTER.exists(), reason="needs print_sample_verdicts")
NUMBERS = itertools.count(1)


def faster():
    """A sample verdict that is faster, on the CPU."""
    lines = subprocess.run([str(PRINTER)], capture_output=True, text=True, check=True).stdout
    return next(each for each in map(json.loads, lines.splitlines())
                if each["outcome"] == "faster" and not each["machine"]["gpu"])


FASTER = faster() if PRINTER.exists() else {}


class Class:
    """A server with a class, two students, and a runner that a mentor promoted."""

    def __init__(self, folder, deadline=""):
        self.hall = Hall(Assay(folder), folder / "hall", "--spot-checks", "100")
        self.web, self.mentor = Web(self.hall.url), self.hall.token
        body = {"name": "class", "jobs_a_day": 500} | ({"deadline": deadline} if deadline else {})
        self.id = self.api("POST", "/api/classes", body)["class"]["id"]
        self.ann, self.ben = self.join("ann"), self.join("ben")
        self.box = member(self.web, self.mentor, "box owner", "machine")
        self.take(self.box, "box")
        self.promote("box")

    def by(self, token, method, path, body=None):
        return self.web.by(token, method, path, body)

    def api(self, method, path, body=None, token=None):
        reply = self.by(token or self.mentor, method, path, body)
        assert reply.status in (200, 201, 202, 204), (method, path, reply)
        return reply.json if reply.body else None

    def join(self, name, role="student"):
        code = self.api("POST", f"/api/classes/{self.id}/invitations", {"role": role})["code"]
        joined = self.web.ask("POST", "/api/join", {"code": code, "name": name})
        assert joined.status == 201, joined
        return joined.json["token"]

    def runner(self, name):
        return next(each for each in self.api("GET", "/api/runners")["runners"]
                    if each["name"] == name)

    def promote(self, name, promoted=True):
        self.api("POST", f"/api/runners/{self.runner(name)['id']}/promotion",
                 {"promoted": promoted})

    def take(self, token, name, device="cpu"):
        """A lease, or None."""
        return self.api("POST", "/api/runner/take", {"runner": name, "device": device}, token)

    def submit(self, token, **fields):
        body = {"problem": "softmax", "size": "tiny", "name": "mine.cpp",
                "source": f"// {next(NUMBERS)}\n"}
        return self.api("POST", "/api/jobs", body | fields, token)["job"]["id"]

    def verdict(self, taken, speedup=97.0):
        """A verdict on that job, as good as one likes."""
        source = taken["job"]["candidate"]["source"].encode()
        offered = self.api("GET", "/api/problems/softmax")["problem"]
        verdict = json.loads(json.dumps(FASTER))
        verdict["id"] = hashlib.sha256(taken["lease"].encode()).hexdigest()[:12]
        verdict["candidate"]["hash"] = hashlib.sha256(source).hexdigest()
        asked = taken["job"]["problem"]
        verdict["problem"] |= {"name": "softmax", "hash": asked["hash"], "size": asked["size"],
                               "set": offered["sizes"].get(asked["size"], {})}
        headline = verdict["speed"]["headline"]
        result = verdict["speed"]["baselines"][headline]
        result |= {"speedup": speedup, "ci": [0.99 * speedup, 1.01 * speedup],
                   "certified_speedup": 0.98 * speedup}
        return verdict

    def end(self, token, taken, verdict=None, lease=None, **more):
        body = {"lease": lease or taken["lease"], "verdict": verdict or self.verdict(taken), **more}
        return self.by(token, "POST", f"/api/runner/jobs/{taken['job']['id']}/end", body)

    def job(self, job):
        return self.api("GET", f"/api/jobs/{job}")["job"]

    def ranked(self):
        board = self.api("GET", "/api/board?problem=softmax")
        entries = [entry["author"] for each in board["boards"] for entry in each["entries"]]
        return entries + [each["name"] for each in board["players"]]

    def judge(self, token, name, speedup=1.2):
        taken = self.take(token, name)
        assert taken, "there is a job for it"
        assert self.end(token, taken, self.verdict(taken, speedup)).json["counted"]
        return taken["job"]["id"]

    def clear(self):
        """No job waits or runs."""
        jobs = self.api("GET", "/api/jobs?all=1")["jobs"]
        for job in jobs:
            if job["state"] in ("queued", "running"):
                self.api("DELETE", f"/api/jobs/{job['id']}")


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    room = Class(tmp_path_factory.mktemp("attacks"))
    yield room
    room.hall.end()


@pytest.fixture(autouse=True)
def nothing_left(request):
    yield
    if "room" in request.fixturenames:
        request.getfixturevalue("room").clear()


def test_1_an_own_runner_makes_a_speedup_up(room):
    room.submit(room.ann)
    taken = room.take(room.ann, "mine")
    assert room.end(room.ann, taken).json["counted"]
    assert "ann" not in room.ranked()
    verdict = room.api("GET", f"/api/verdicts/{room.verdict(taken)['id']}", token=room.ben)
    assert verdict["entry"]["own_runner"]


def test_2_it_has_the_name_of_the_servers_runner(room):
    job = room.submit(room.ann)
    room.end(room.ann, room.take(room.ann, "cpu of the server"))
    assert room.job(job)["own_runner"] and "ann" not in room.ranked()
    page = room.by(room.ben, "GET", f"/jobs/{job}").text
    assert ">own runner</span>" in page


def test_3_it_has_the_name_of_a_promoted_runner(room):
    job = room.submit(room.ann)
    room.end(room.ann, room.take(room.ann, "box"))
    assert room.job(job)["own_runner"] and "ann" not in room.ranked()


def test_4_it_takes_another_members_job(room):
    room.submit(room.ben)
    assert room.take(room.ann, "mine") is None


def test_5_a_student_promotes_the_own_runner(room):
    room.take(room.ann, "mine")
    number = room.runner("mine")["id"]
    path = f"/api/runners/{number}/promotion"
    assert room.by(room.ann, "POST", path, {"promoted": True}).status == 403
    browser = room.web.sign_in(room.ann)
    assert browser.send(f"/runners/{number}/promotion", promoted="yes").status == 403
    assert not room.runner("mine")["promoted"]


def test_6_a_mentor_of_one_class_promotes_a_runner(room):
    mentor = room.join("class mentor", "mentor")
    room.take(mentor, "of the class mentor")
    path = f"/api/runners/{room.runner('of the class mentor')['id']}/promotion"
    assert room.by(mentor, "POST", path, {"promoted": True}).status == 403


def test_7_a_promotion_after_the_judgement_begins(room):
    room.take(room.ann, "later")
    job = room.submit(room.ann)
    taken = room.take(room.ann, "later")
    room.promote("later")
    assert room.end(room.ann, taken).json["counted"]
    room.promote("later", False)
    assert room.job(job)["own_runner"] and "ann" not in room.ranked()


def test_8_a_demoted_runner_ends_the_job_that_it_has(room):
    job = room.submit(room.ben)
    room.take(room.ann, "was promoted")
    room.promote("was promoted")
    taken = room.take(room.ann, "was promoted")
    room.promote("was promoted", False)
    assert not room.end(room.ann, taken).json["counted"]
    assert room.job(job)["state"] == "queued"


def test_9_an_end_or_progress_by_a_guessed_lease(room):
    job = room.submit(room.ben)
    taken = room.take(room.box, "box")
    own = taken["lease"]
    for lease in ("0" * 32, "", own.upper(), own[:-1], "%", own + "0"):
        ended = room.end(room.ann, taken, lease=lease or " ")
        assert ended.status in (200, 400) and not (ended.json.get("counted")), (lease, ended)
        asked = {"lease": lease, "event": {"event": "progress", "text": "evil"}}
        going = room.by(room.ann, "POST", f"/api/runner/jobs/{job}/progress", asked)
        assert not going.json.get("go_on"), (lease, going)
    assert "evil" not in room.by(room.ben, "GET", f"/api/jobs/{job}/events").text
    assert room.job(job)["state"] == "running"


def test_10_a_lease_of_an_earlier_attempt(room):
    job = room.submit(room.ben)
    first = room.take(room.box, "box")
    error = {"lease": first["lease"], "error": {"kind": "interrupted", "message": "back"}}
    room.api("POST", f"/api/runner/jobs/{job}/end", error, room.box)
    second = room.take(room.box, "box")
    assert not room.end(room.box, first, room.verdict(first)).json["counted"]
    assert room.end(room.box, second, room.verdict(second, 1.1)).json["counted"]


def test_11_a_lease_ends_another_job(room):
    first, second = room.submit(room.ben), room.submit(room.ann)
    taken = room.take(room.box, "box")
    body = {"lease": taken["lease"], "verdict": room.verdict(taken)}
    for job in {first, second} - {taken["job"]["id"]}:
        assert not room.by(room.box, "POST", f"/api/runner/jobs/{job}/end", body).json["counted"]


def refused(room, change, why, **fields):
    """A promoted runner's verdict, changed, is refused, and the job goes on."""
    job = room.submit(room.ben, **fields)
    taken = room.take(room.box, "box")
    verdict = room.verdict(taken)
    change(verdict)
    ended = room.end(room.box, taken, verdict)
    assert ended.status == 400 and why in ended.text, ended
    assert room.job(job)["state"] == "running"


def test_12_a_verdict_at_an_easier_size(room):
    sizes = room.api("GET", "/api/problems/softmax")["problem"]["sizes"]
    refused(room, lambda each: each["problem"].update(set=sizes["tiny"]), "another size",
            size="small")


def test_13_a_verdict_that_calls_its_size_by_another_name(room):
    refused(room, lambda each: each["problem"].update(size="large"), "of the size large")


def test_14_a_verdict_for_another_problems_board(room):
    refused(room, lambda each: each["problem"].update(name="matmul"), "calls the problem matmul")


def test_15_a_verdict_on_another_source(room):
    refused(room, lambda each: each["candidate"].update(hash="0" * 64), "another source")


def test_16_a_verdict_by_a_wide_tolerance(room):
    refused(room, lambda each: each["correctness"].update(tolerance="allclose:1"), "tolerance")


def test_17_a_verdict_against_a_slow_opponent(room):
    def change(verdict):
        verdict["speed"]["against"] = {"path": "slow.cpp", "hash": "0" * 64}
    refused(room, change, "another opponent")


def test_18_a_verdict_with_the_id_of_another(room):
    first = room.submit(room.ben)
    taken = room.take(room.box, "box")
    assert room.end(room.box, taken, room.verdict(taken, 1.1)).json["counted"]
    known = room.job(first)["verdict"]
    room.clear()
    refused(room, lambda each: each.update(id=known), "a record with this verdict's id")


def test_19_a_runner_without_a_gpu_judges_cuda(room):
    room.submit(room.ben, name="mine.cu")
    taken = room.take(room.box, "box", "cuda:0")
    ended = room.end(room.box, taken)
    assert ended.status == 400 and "not made on a GPU" in ended.text, ended
    room.take(room.box, "box")


def test_20_a_promoted_runner_takes_all_jobs_at_once(room):
    for _ in range(8):
        room.submit(room.ben)
    held = 0
    while room.take(room.box, "box"):
        held += 1
    assert held == 4


def test_21_an_account_has_runners_without_end(room):
    cas = room.join("cas")
    asked = [{"runner": f"r{i}", "device": "cpu"} for i in range(25)]
    statuses = [room.by(cas, "POST", "/api/runner/take", each).status for each in asked]
    assert statuses == [204] * 20 + [400] * 5


def test_22_an_own_runner_gives_its_job_back_for_ever(room):
    job = room.submit(room.ann)
    for _ in range(3):
        taken = room.take(room.ann, "mine")
        error = {"lease": taken["lease"], "error": {"kind": "interrupted", "message": "back"}}
        room.api("POST", f"/api/runner/jobs/{job}/end", error, room.ann)
    assert room.job(job)["state"] == "failed"
    assert room.take(room.ann, "mine") is None


def test_23_a_flood_of_events(room):
    job = room.submit(room.ann)
    taken = room.take(room.ann, "mine")
    event = {"event": "progress", "text": "x" * 100_000}
    asked = {"lease": taken["lease"], "event": event}
    assert room.by(room.ann, "POST", f"/api/runner/jobs/{job}/progress", asked).json["go_on"]
    assert len(room.by(room.ben, "GET", f"/api/jobs/{job}/events").text) < 5000


def test_24_a_promoted_runner_lies_and_is_checked_by_another(room):
    """All its verdicts are checked here: by somebody else's runner, not by its own second name."""
    other = member(room.web, room.mentor, "other owner", "machine")
    room.take(other, "honest")
    room.promote("honest")
    room.take(room.box, "box 2")
    room.promote("box 2")
    job = room.submit(room.ben)
    room.judge(room.box, "box", 97)
    assert room.take(room.box, "box") is None and room.take(room.box, "box 2") is None
    taken = room.take(other, "honest")
    assert taken["job"]["kind"] == "spot_check"
    # Its author cannot end it.
    assert room.by(room.ben, "DELETE", f"/api/jobs/{taken['job']['id']}").status == 403
    assert room.end(other, taken, room.verdict(taken, 1.1)).json["counted"]
    verdict = room.job(job)["verdict"]
    found = room.api("GET", f"/api/verdicts/{verdict}", token=room.ann)["spot_check"]
    assert found["result"] == "differs" and found["runner"] == "honest", found
    assert "A spot check disagrees." in room.by(room.ann, "GET", f"/verdicts/{verdict}").text
    assert "a spot check disagrees" in room.by(room.ann, "GET", "/?problem=softmax").text
    assert "1 of 1 disagree" in room.by(room.ann, "GET", "/machine").text
    # It is nobody's second try.
    assert room.api("GET", "/api/board?problem=softmax")["boards"][0]["entries"][0]["speedup"] == 97
    for name in ("honest", "box 2"):
        room.promote(name, False)


def test_25_a_word_of_the_address_in_a_command(room):
    for query in ("problem=softmax%3Bcurl%20evil", "problem=softmax&size=%3Bcurl%20evil",
                  "problem=softmax&against=%3Bcurl%20evil"):
        assert "curl evil" not in room.by(room.ann, "GET", f"/submit?{query}").text


def test_26_a_file_name_with_a_command(room):
    body = {"problem": "softmax", "name": "a;curl evil.cpp", "source": "x"}
    assert room.by(room.ann, "POST", "/api/jobs", body).status == 400
    browser = room.web.sign_in(room.ann)
    shown = browser.send("/submit", size="tiny", **body)
    assert shown.status == 400
    commands = re.findall(r'class="command">(.*?)</div>', shown.text, re.S)
    assert commands and all("softmax a;curl" not in each for each in commands), commands


def test_27_a_name_that_looks_like_anothers(room):
    for name in ("\u0430nn", "ANN", "ann ", "a\u200bnn", "\uff41nn", "\u0251nn", "ann\u0301",
                 "ment\u043er", "ment0r", "a  b", "server"):
        code = room.api("POST", f"/api/classes/{room.id}/invitations", {})["code"]
        joined = room.web.ask("POST", "/api/join", {"code": code, "name": name})
        assert joined.status in (400, 409), (name, joined)


def test_28_an_invitation_is_used_twice(room):
    code = room.api("POST", f"/api/classes/{room.id}/invitations", {"uses": 1})["code"]
    assert room.web.ask("POST", "/api/join", {"code": code, "name": "dan"}).status == 201
    assert room.web.ask("POST", "/api/join", {"code": code, "name": "eve"}).status == 410
    browser_form = form(name="eve")
    assert room.web.ask("POST", f"/join/{code}", browser_form, {"Content-Type": FORM}).status == 410


def test_29_a_machine_that_an_own_runner_makes_up(room):
    body = {"runner": "mine", "device": "cpu",
            "machine": {"schema": "assay.machine/1", "cpu": "Evil 9000"}}
    room.by(room.ann, "POST", "/api/runner/take", body)
    assert "Evil 9000" not in room.by(room.ben, "GET", "/machine").text


def test_30_a_final_is_forged_delayed_and_cancelled(tmp_path):
    """The first attack that was found: a student's own runner took the student's final."""
    moment = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=8)
    room = Class(tmp_path, moment.strftime("%Y-%m-%dT%H:%M:%SZ"))
    try:
        # Keys of finals, before the server could use them.
        for job in range(1, 4):
            room.submit(room.ann, key=f"final of class 1 job {job}")
            room.judge(room.box, "box", 1.1)
        room.submit(room.ann)
        room.end(room.ann, room.take(room.ann, "mine"))  # 97 times as fast, it says
        # Hidden, though its compiler quotes it.
        secret = room.submit(room.ann, source="int hush_hush\n")
        taken = room.take(room.box, "box")
        failed = room.verdict(taken) | {"outcome": "build_failed", "message": "error: hush_hush",
                                        "speed": None}
        assert room.end(room.box, taken, failed).json["counted"]
        for path in (f"/api/verdicts/{failed['id']}", f"/verdicts/{failed['id']}",
                     f"/api/jobs/{secret}/events", f"/jobs/{secret}"):
            assert "hush_hush" not in room.by(room.ben, "GET", path).text, path
        held = room.submit(room.ann)
        late = room.take(room.ann, "mine")
        assert late["job"]["id"] == held
        while datetime.datetime.now(datetime.timezone.utc) < moment:
            time.sleep(0.2)
        end = time.monotonic() + 20
        while room.job(held)["state"] == "running" and time.monotonic() < end:
            time.sleep(0.2)
        assert not room.end(room.ann, late).json["counted"]
        assert room.take(room.ann, "mine") is None
        room.judge(room.box, "box", 1.3)  # what its own runner held
        finals = []
        while not finals and time.monotonic() < end:
            time.sleep(0.2)
            finals = room.api("GET", f"/api/classes/{room.id}")["finals"]
        (final,) = finals
        assert room.take(room.ann, "mine") is None, "its final is for others"
        assert room.by(room.ann, "DELETE", f"/api/jobs/{final['final']['job']}").status == 403
        assert room.judge(room.box, "box", 1.2) == final["final"]["job"]
        while not final["final"]["speed"] and time.monotonic() < end:
            time.sleep(0.2)  # the board hears of it a moment later
            (final,) = room.api("GET", f"/api/classes/{room.id}")["finals"]
        assert final["final"]["state"] == "done" and final["final"]["speed"]["speedup"] < 2, final
        late = {"problem": "softmax", "name": "late.cpp", "source": "x"}
        assert room.by(room.ann, "POST", "/api/jobs", late).status == 403
    finally:
        room.hall.end()
