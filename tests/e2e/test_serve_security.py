"""assay serve under hostile texts: hostile_texts.jsonl, wherever a member, a runner or a visitor
can put a text. Nothing of it becomes markup, a path or a command."""
import copy
import hashlib
import io
import json
import subprocess
import tarfile
import urllib.parse

import pytest

from conftest import ASSAY, ROOT, Assay
from served import Web, raw, statuses
from strict_html import HIDDEN, Page, hash_of
from test_serve import Hall

TEXTS = [
    json.loads(line)
    for line in (ROOT / "tests" / "e2e" / "hostile_texts.jsonl").read_text().splitlines()
]
OUTSIDE = b"what lies outside of the server's folder\n"
PRINTER = ASSAY.parent / "tests" / "print_sample_verdicts"
pytestmark = pytest.mark.skipif(not PRINTER.exists(), reason="needs print_sample_verdicts")
# Every so many of them; all take half a minute.
SOME_AND_ALL = pytest.mark.parametrize("step", [9, pytest.param(1, marks=pytest.mark.thorough)])


def texts(*kinds):
    return [each["text"] for each in TEXTS if each["kind"] in kinds]


class Served:
    """A server with a mentor, a class, and what the tests have put into it."""

    def __init__(self, folder):
        (folder / "outside.txt").write_bytes(OUTSIDE)
        self.hall = Hall(Assay(folder), folder / "hall")
        self.web, self.mentor = Web(self.hall.url), self.hall.token
        made = self.api("POST", "/api/classes", {"name": texts("markup")[0]})
        self.class_id = made["class"]["id"]
        self.pages = {}

    def api(self, method, path, body=None, token=None):
        reply = self.web.by(token or self.mentor, method, path, body)
        assert reply.status in (200, 201, 202), (method, path, reply)
        return reply.json

    def join(self, name):
        """A member of the class, or None where the name is refused or taken."""
        invited = self.api("POST", f"/api/classes/{self.class_id}/invitations", {})
        reply = self.web.ask("POST", "/api/join", {"code": invited["code"], "name": name})
        assert reply.status in (201, 400, 409), reply
        return reply.json["token"] if reply.status == 201 else None

    def page(self, path, token=None, statuses_=(200,)):
        """A page whose every tag is the server's own."""
        reply = self.web.by(token or self.mentor, "GET", path)
        assert reply.status in statuses_, (path, reply)
        page = Page(reply.text, reply.header("Content-Security-Policy"))
        assert page.faults == [], (path, page.faults[:5])
        return page.text


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    served = Served(tmp_path_factory.mktemp("hostile"))
    yield served
    served.hall.end()
    home = served.hall.folder.parent
    assert (home / "outside.txt").read_bytes() == OUTSIDE
    assert not list(home.rglob("evil*"))


def shown(text):
    """As a page shows it, without white space: what does not show is a question mark."""
    return "".join(HIDDEN.sub("?", text.replace("\r", " ")).split())


def sample_verdicts():
    lines = subprocess.run([str(PRINTER)], capture_output=True, text=True, check=True).stdout
    verdicts = [json.loads(line) for line in lines.splitlines()]
    largest = {}
    for each in sorted(verdicts, key=lambda verdict: len(json.dumps(verdict))):
        largest[each["outcome"]] = each
    return list(largest.values())


def places(document, path=()):
    """The paths of all texts in a document."""
    if isinstance(document, str):
        yield path
    if not isinstance(document, (dict, list)):
        return
    items = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in items:
        yield from places(value, (*path, key))


def put(document, path, text):
    for key in path[:-1]:
        document = document[key]
    document[path[-1]] = text


class Runner:
    """A member's own runner, which sends verdicts of its own making."""

    def __init__(self, served, token, name):
        self.served, self.token, self.name = served, token, name

    def submit(self, source, name="mine.cpp"):
        body = {"problem": "softmax", "name": name, "source": source}
        return self.served.api("POST", "/api/jobs", body, self.token)["job"]["id"]

    def take(self):
        body = {"runner": self.name, "device": "cpu", "version": self.name}
        return self.served.api("POST", "/api/runner/take", body, self.token)

    def end(self, taken, verdict, lease=None):
        path = f"/api/runner/jobs/{taken['job']['id']}/end"
        body = {"lease": lease or taken["lease"], "verdict": verdict}
        return self.served.web.by(self.token, "POST", path, body)

    def fit(self, verdict, taken):
        verdict = copy.deepcopy(verdict)
        source = taken["job"]["candidate"]["source"]
        verdict["id"] = hashlib.sha256(source.encode()).hexdigest()[:12]
        verdict["candidate"]["hash"] = hashlib.sha256(source.encode()).hexdigest()
        asked = taken["job"]["problem"]
        offered = self.served.api("GET", "/api/problems/softmax")["problem"]
        verdict["problem"] |= {"hash": asked["hash"], "name": "softmax", "size": asked["size"],
                               "set": offered["sizes"].get(asked["size"], {})}
        if verdict["correctness"]:
            verdict["correctness"]["tolerance"] = "error-ratio"
        if verdict["speed"]:
            verdict["speed"]["threshold"] = 1
        if verdict["speed"] and verdict["speed"].get("against"):
            verdict["speed"]["against"] = None
        if verdict["outcome"] == "correct":  # of correctness alone, which no job asks for
            verdict["outcome"] = "unsettled"
        return verdict

    def free_places(self, verdict, taken):
        """Those texts of a verdict that the server takes whatever they are. A verdict that comes
        without the lease is read, and does not count."""
        free, taken_as = [], {}
        for path in places(verdict):
            kind = tuple(0 if isinstance(key, int) else key for key in path)
            if path in (("problem", "name"), ("id",)):
                continue
            if kind in taken_as:
                free += [path] if taken_as[kind] else []
                continue
            tried = copy.deepcopy(verdict)
            put(tried, path, "<i>")
            reply = self.end(taken, tried, lease="0" * 32)
            assert reply.status in (200, 400), reply
            taken_as[kind] = reply.status == 200
            if taken_as[kind]:
                assert not reply.json["counted"]
                free.append(path)
        return free


def test_the_texts_are_many_and_each_says_what_it_is():
    assert len(TEXTS) >= 200
    assert len({each["text"] for each in TEXTS}) == len({each["what"] for each in TEXTS})
    assert {each["kind"] for each in TEXTS} == {"markup", "markdown", "terminal", "path"}


def test_the_reader_of_pages_finds_each_text_that_was_not_escaped():
    policy = hash_of("")
    page = "<!doctype html><body><main>{}</main><a href=\"/a\" title=\"{}\">x</a></body>"
    assert Page(page.format("a &lt; b", "c"), policy).faults == []
    for text in texts("markup", "terminal"):
        if HIDDEN.search(text) or set(text) & set("<>"):
            assert Page(page.format(text, ""), policy).faults, text
        if HIDDEN.search(text) or set(text) & set('<>"'):
            assert Page(page.format("", text), policy).faults, text


@SOME_AND_ALL
def test_no_text_of_a_member_or_a_runner_becomes_markup(served, step):
    samples, free = sample_verdicts(), {}
    assert len(samples) > 8
    judged = {}
    names = 0
    for number, each in enumerate(TEXTS[::step]):
        text = each["text"]
        token = served.join(text[:40])
        names += token is not None
        # An account has few runners: one whose text is no name is another member's.
        runner = Runner(served, token or served.join(f"Member {number} by {step}"), text[:24])
        source = text.replace("\0", "") + f"\n// {number} by {step}\n"
        job = runner.submit(source)
        taken = runner.take()
        assert taken["job"]["id"] == job
        event = {"event": "progress", "stage": text, "message": text, "text": text}
        progress = {"lease": taken["lease"], "event": event}
        served.api("POST", f"/api/runner/jobs/{job}/progress", progress, runner.token)
        sample = number % len(samples)
        verdict = runner.fit(samples[sample], taken)
        if sample not in free:
            free[sample] = runner.free_places(verdict, taken)
            assert ("log",) in free[sample] and ("message",) in free[sample]
        for path in free[sample]:
            put(verdict, path, text)
        reply = runner.end(taken, verdict)
        assert reply.status == 200 and reply.json["counted"], (each, reply)
        judged[job] = (verdict["id"], text, source)
    assert names > len(judged) / 2 or step == 1, "most texts may be names"
    for job, (verdict, text, source) in judged.items():
        served.page(f"/jobs/{job}")
        seen = shown(served.page(f"/verdicts/{verdict}"))
        # Twice at least: in the source, and in what the runner told.
        assert seen.count(shown(text)) >= 2, (text, seen)
        assert shown(source) in seen, (text, seen)
    ids = [verdict for verdict, _, _ in judged.values()]
    for first, second in zip(ids, ids[1:6] + ids[-6:]):
        served.page(f"/compare?a={first}&b={second}")
    for path in ("/", "/?problem=softmax", "/problems/softmax", "/jobs", "/machine", "/submit"):
        served.page(path)
    seen = served.page(f"/classes/{served.class_id}")
    assert texts("markup")[0] in seen and texts("markup")[18] in seen


def test_no_failure_becomes_markup(served):
    for text in texts("markup", "terminal")[::4]:
        runner = Runner(served, served.mentor, "fails")
        job = runner.submit(f"// fails\n{text}\n".replace("\0", ""))
        taken = runner.take()
        error = {"kind": "usage", "message": text}
        body = {"lease": taken["lease"], "error": error}
        served.api("POST", f"/api/runner/jobs/{job}/end", body)
        assert shown(text) in shown(served.page(f"/jobs/{job}")), text


def packed(files):
    """A tar of (name, content) or (name, content, type, link)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, content, *special in files:
            member_ = tarfile.TarInfo(name)
            member_.size = len(content)
            if special:
                member_.type, member_.linkname = special
            tar.addfile(member_, io.BytesIO(content))
    return out.getvalue()


def match_files(prose=None):
    folder = ROOT / "examples" / "match"
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            files[str(path.relative_to(folder))] = path.read_bytes()
    if prose:
        for name in ("plan.md", "by-hand.md", "model.md", "head-to-head.md", "stuck.md"):
            files[name] = prose.encode()
    return files


def test_no_prose_of_a_worklog_becomes_markup(served):
    token = served.join("writer")
    groups = {}
    for each in TEXTS:
        groups.setdefault(each["kind"], []).append(each["text"].replace("\0", ""))
    for kind, group in groups.items():
        for begin in range(0, len(group), 40):
            # A fence that is open would hold all that follows.
            prose = "\n\n~~~~\n~~~~\n\n".join(group[begin : begin + 40])
            tar = packed(match_files(prose).items())
            reply = served.web.by(token, "POST", "/api/worklogs", tar)
            assert reply.status in (200, 201), (kind, begin, reply)
            worklog = reply.json["worklog"]["id"]
            served.page(f"/worklogs/{worklog}/report")
            served.page(f"/worklogs/{worklog}")
    mark = {"revision": 0, "upload": reply.json["worklog"]["uploads"], "points": {},
            "note": "\n".join(texts("markup"))[:2000]}
    reply = served.web.by(served.mentor, "POST", f"/api/worklogs/{worklog}/grade", mark)
    assert reply.status == 200, reply
    served.page(f"/worklogs/{worklog}")
    served.page(f"/classes/{served.class_id}/sheet")
    served.page("/worklogs", token)


def test_no_member_of_a_tar_leads_outside(served):
    token = served.join("packer")
    whole = list(match_files().items())
    outside = str(served.hall.folder.parent / "outside.txt")
    hostile = [[(text.replace("\0", "0"), b"evil")] for text in texts("path")]
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE):
        for target in (outside, "../outside.txt", "/etc/passwd", "../../../mentor-token"):
            hostile.append([("plan.md", b"", kind, target)])
    for kind in (tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE):
        hostile.append([("versions/v9.cpp", b"", kind, "")])
    # A link, and then a file behind it.
    hostile.append([("versions", b"", tarfile.SYMTYPE, str(served.hall.folder.parent)),
                    ("versions/outside.txt", b"evil")])
    for files in hostile:
        named = [each for each in whole if each[0] not in {name for name, *_ in files}]
        reply = served.web.by(token, "POST", "/api/worklogs", packed(named + files))
        assert reply.status in (200, 201, 400), (files, reply)
        for secret in (b"root:x:", OUTSIDE.strip(), served.mentor.encode()):
            assert secret not in reply.body, files
        if reply.status == 400:
            assert HIDDEN.search(reply.json["error"]["message"]) is None, reply
            continue
        kept = served.web.by(token, "GET", f"/api/worklogs/{reply.json['worklog']['id']}/tar")
        for secret in (b"root:x:", OUTSIDE.strip(), served.mentor.encode()):
            assert secret not in kept.body, files
    assert (served.hall.folder.parent / "outside.txt").read_bytes() == OUTSIDE


@SOME_AND_ALL
def test_no_address_becomes_markup_or_a_file(served, step):
    web, bearer = served.web, f"Authorization: Bearer {served.mentor}\r\n"
    fields = ("problem", "size", "precision", "processor", "tier", "by", "p", "a", "b", "class")
    for each in TEXTS[::step]:
        quoted = urllib.parse.quote(each["text"], safe="")
        query = "&".join(f"{name}={quoted}" for name in fields)
        for path in (f"/problems/{quoted}", f"/verdicts/{quoted}", f"/ladders/{quoted}",
                     f"/runs/{quoted}", f"/jobs/{quoted}", f"/join/{quoted}", f"/{quoted}",
                     f"/?{query}", f"/?problem={quoted}", f"/?size={quoted}",
                     f"/compare?{query}", f"/submit?problem={quoted}"):
            if len(path) > 4000:
                continue
            reply = web.by(served.mentor, "GET", path)
            assert reply.status in (200, 303, 400, 403, 404), (path, reply)
            assert b"root:x:" not in reply.body and served.mentor.encode() not in reply.body
            assert "evil" not in reply.header("Location") + reply.header("Set-Cookie")
            if reply.header("Content-Type").startswith("text/html"):
                page = Page(reply.text, reply.header("Content-Security-Policy"))
                assert page.faults == [], (path, page.faults[:5])
    # As they stand: what is no request's target is refused.
    for text in texts("path")[::step]:
        head = f"GET /{text} HTTP/1.1\r\nHost: {web.host}:{web.port}\r\n{bearer}"
        received = raw(web, (head + "Connection: close\r\n\r\n").encode(), 5)
        assert set(statuses(received)) <= {400, 403, 404}, (text, received)
        assert b"root:x:" not in received and b"\nSet-Cookie" not in received
        assert b"\nLocation" not in received
