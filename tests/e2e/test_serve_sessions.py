"""assay serve and browsers: requests that another site's page sends in a member's name, stolen and
planted cookies, and the headers of every reply."""
import hashlib
import json
import re
import shutil
import sqlite3
import subprocess
import time

import pytest

from conftest import ASSAY, Assay
from served import FORM, Browser, Web, connected, form, member, raw, rest, softmax_source
from test_serve import Hall
from test_serve_security import match_files, packed

PRINTER = ASSAY.parent / "tests" / "print_routes"
pytestmark = pytest.mark.skipif(not PRINTER.exists(), reason="needs print_routes")
JOB = {"problem": "softmax", "name": "mine.cpp", "source": softmax_source()}
# Of every request that changes something, a body that does so. What is in braces is filled in.
JSON_BODIES = {
    "POST /api/jobs": JOB,
    "DELETE /api/jobs/{id}": None,
    "POST /api/runner/take": {"runner": "box", "device": "cpu"},
    "POST /api/runner/jobs/{id}/progress": {"lease": "{lease}"},
    "POST /api/runner/jobs/{id}/end": {
        "lease": "{lease}",
        "error": {"kind": "usage", "message": "broken"},
    },
    "POST /api/runners/{id}/promotion": {"promoted": True},
    "POST /api/accounts": {"name": "new", "role": "mentor"},
    "POST /api/me/tokens": None,
    "POST /api/classes": {"name": "second"},
    "POST /api/classes/import": "{class file}",
    "PATCH /api/classes/{id}": {"name": "renamed"},
    "POST /api/classes/{id}/finals": None,
    "POST /api/classes/{id}/invitations": {},
    "DELETE /api/classes/{id}/invitations/{invitation}": None,
    "POST /api/join": {"code": "{code}", "name": "joined"},
    "POST /api/worklogs": "{tar}",
    "POST /api/worklogs/{id}/grade": {"revision": 0, "note": "good"},
    "DELETE /api/me/tokens": None,
}
FORMS = {
    "POST /verdicts/{id}/rejudge": {},
    "POST /compare": {"a": "{verdict}", "b": "{verdict}"},
    "POST /jobs/{id}/cancel": {},
    "POST /runners/{id}/promotion": {"promoted": "no"},
    "POST /submit": {**JOB, "problem": "softmax", "size": "tiny"},
    "POST /login": {"token": "{student}"},
    "POST /classes": {"name": "third", "jobs_a_day": 5},
    "POST /classes/{id}/finals": {},
    "POST /classes/{id}/invitations": {"role": "student", "uses": 1, "lasts": "1d", "for": ""},
    "POST /classes/{id}/invitations/{invitation}/end": {},
    "POST /join/{code}": {"name": "joined by page"},
    "POST /worklogs": {},
    "POST /worklogs/{id}/grade": {"revision": 1, "upload": 1, "note": "very good"},
    "POST /classes/{id}/deadline": {"deadline": "2099-01-01T00:00:00Z"},
    "POST /classes/{id}/close": {"sure": "yes"},
    "POST /logout": {},
}
WITHOUT_SESSION = {"POST /login", "POST /join/{code}", "POST /api/join"}
PROTECTS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
}


def routes():
    lines = subprocess.run([str(PRINTER)], capture_output=True, text=True, check=True).stdout
    return [line.split(" ", 2) for line in lines.splitlines()]


@pytest.fixture(scope="module")
def hall(tmp_path_factory):
    home = tmp_path_factory.mktemp("sessions")
    hall = Hall(Assay(home), home / "hall")
    yield hall
    hall.end()


@pytest.fixture(scope="module")
def web(hall):
    return Web(hall.url)


@pytest.fixture(scope="module")
def facts(hall, web):
    """The things that bodies name: a class, invitations, a worklog, jobs, a lease."""
    mentor = hall.token

    def by(method, path, body=None, token=mentor):
        reply = web.by(token, method, path, body)
        assert reply.status in (200, 201, 202), (path, reply)
        return reply.json if "json" in reply.header("Content-Type") else reply.body

    student = member(web, mentor, "student 1 (example)")
    made = by("POST", "/api/classes", {"name": "first"})["class"]["id"]
    invited = [by("POST", f"/api/classes/{made}/invitations", {}) for _ in range(4)]
    joined = web.ask("POST", "/api/join", {"code": invited[0]["code"], "name": "ann"}).json
    tar = packed(match_files().items())
    worklog = by("POST", "/api/worklogs", tar, joined["token"])["worklog"]["id"]
    jobs = [by("POST", "/api/jobs", JOB)["job"]["id"] for _ in range(3)]
    taken = by("POST", "/api/runner/take", {"runner": "box", "device": "cpu"})
    assert taken["job"]["id"] == jobs[0]
    return {
        "student": student,
        "lease": taken["lease"],
        "leased": jobs[0],
        "jobs": jobs[1:],
        "class": made,
        "class file": by("GET", f"/api/classes/{made}/export"),
        "invitations": [each["invitation"]["id"] for each in invited[1:]],
        "codes": [each["code"] for each in invited[2:]],
        "worklog": worklog,
        "tar": tar,
        "verdict": "0123456789ab",
    }


def target_of(route, facts):
    path = route.split(" ")[1]
    job = facts["leased"] if "runner/jobs" in path else facts["jobs"]["/api/" not in path]
    thing = re.match(r"/(?:api/)?(\w+)", path).group(1)
    ids = {"jobs": job, "runner": job, "runners": 1, "classes": facts["class"]}
    ids |= {"worklogs": facts["worklog"], "verdicts": facts["verdict"]}
    path = path.replace("{id}", str(ids.get(thing, 0)))
    path = path.replace("{invitation}", str(facts["invitations"]["/api/" not in path]))
    return path.replace("{code}", facts["codes"][1])


def body_of(route, facts):
    """(the body, its type)"""
    if route in FORMS:
        fields = {name: str(value) for name, value in FORMS[route].items()}
        fields = {name: value.format(**facts) if value in ("{student}", "{verdict}") else value
                  for name, value in fields.items()}
        return fields, FORM
    body = JSON_BODIES[route]
    if isinstance(body, str):
        return facts[body.strip("{}")], "application/octet-stream"
    text = json.dumps(body or {}).replace("{lease}", facts["lease"])
    return text.replace("{code}", facts["codes"][0]).encode(), "application/json"


def state_of(hall):
    """All rows of the server's database, from a copy."""
    copy = hall.folder.parent / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir()
    for path in hall.folder.glob("*.sqlite*"):
        shutil.copy(path, copy / path.name)
    digest = hashlib.sha256()
    for name in ("serve.sqlite", "archive.sqlite"):
        with sqlite3.connect(copy / name) as database:
            for line in database.iterdump():
                digest.update(line.encode())
    return digest.hexdigest()


def forged(route, browser, other, facts):
    """(what it is, headers, body) of requests that must change nothing."""
    body, kind = body_of(route, facts)
    is_form = kind == FORM

    def of(csrf):
        if not is_form:
            return body, ({"X-CSRF-Token": csrf} if csrf else {})
        return form(**(body | ({"csrf": csrf} if csrf else {}))), {}

    cookie = {"Cookie": browser.cookie, "Content-Type": kind}
    right, right_headers = of(browser.csrf)
    foreign = {
        "another site's": {"Origin": "https://evil.example"},
        "a sandboxed page's": {"Origin": "null"},
        "the same host, another port": {"Origin": "http://127.0.0.1:1"},
        "by TLS": {"Origin": browser.web.url.replace("http:", "https:")},
        "cross-site": {"Sec-Fetch-Site": "cross-site"},
        "same-site": {"Sec-Fetch-Site": "same-site"},
    }
    for what, headers in foreign.items():
        yield f"right field, {what}", cookie | right_headers | headers, right
    for what, headers in foreign.items():
        if route in WITHOUT_SESSION:
            yield f"no session, {what}", {"Content-Type": kind} | headers, of("")[0]
    for what, csrf in (("no field", ""), ("another session's field", other.csrf),
                       ("the cookie as field", browser.cookie.split("=")[1]),
                       ("a field that is cut", browser.csrf[:-1]),
                       ("a field in capitals", browser.csrf.upper() + "X")):
        sent, headers = of(csrf)
        yield what, cookie | headers, sent
        plain = {"Content-Type": "text/plain"}
        yield what + ", as plain text", cookie | headers | plain, sent
    if route not in WITHOUT_SESSION:
        yield "nobody", {"Content-Type": kind}, right
        yield "nobody, a field", {"Content-Type": kind} | right_headers, right
        planted = {"Cookie": "assay_session=" + "0" * 32, "Content-Type": kind}
        yield "a session that is none", planted | right_headers, right


def test_every_request_that_changes_something_has_a_body_here():
    changing = {f"{method} {path}" for method, _, path in routes() if method != "GET"}
    assert changing == set(JSON_BODIES) | set(FORMS)
    assert {f"{method} {path}" for method, access, path in routes()
            if method != "GET" and access == "anyone"} == WITHOUT_SESSION


def test_no_page_of_another_site_changes_anything(hall, web, facts):
    browser, other = web.sign_in(hall.token), web.sign_in(facts["student"])
    assert re.fullmatch("[0-9a-f]{32}", browser.csrf) and browser.csrf != other.csrf
    before = state_of(hall)
    asked = 0
    for route in [*JSON_BODIES, *FORMS]:
        method, target = route.split(" ")[0], target_of(route, facts)
        for what, headers, body in forged(route, browser, other, facts):
            reply = web.ask(method, target, body, headers)
            assert reply.status in (401, 403), (route, what, reply)
            assert not reply.header("Set-Cookie"), (route, what, reply)
            # The field does not count in the address.
            reply = web.ask(method, f"{target}?csrf={browser.csrf}", body, headers)
            assert reply.status in (401, 403), (route, what, reply)
            asked += 2
        assert state_of(hall) == before, f"{route} changed something"
    assert asked > 500
    # The same requests from the server's own pages do what they are for.
    for route in [*JSON_BODIES, *FORMS]:
        if route == "DELETE /api/me/tokens":
            continue
        method, target = route.split(" ")[0], target_of(route, facts)
        body, kind = body_of(route, facts)
        own = {"Content-Type": kind, "Origin": web.url, "Sec-Fetch-Site": "same-origin"}
        if kind == FORM:
            body = form(csrf=browser.csrf, **body)
        else:
            own["X-CSRF-Token"] = browser.csrf
        reply = browser.ask(method, target, body, own)
        # There is no such verdict, a worklog's form has a file, and the class is here already.
        wanted = (404,) if "verdict" in target + str(FORMS.get(route)) else (200, 201, 202, 303)
        wanted = (400, 409) if route in ("POST /api/classes/import", "POST /worklogs") else wanted
        wanted += (400, 404) if route == "POST /compare" else ()
        assert reply.status in wanted, (route, reply)
    assert state_of(hall) != before


def test_a_method_in_disguise_is_no_method(hall, web):
    browser = web.sign_in(hall.token)
    for headers in ({"X-HTTP-Method-Override": "DELETE"}, {"X-Method-Override": "POST"}):
        assert browser.ask("GET", "/api/me/tokens", None, headers).status == 405
    assert browser.ask("GET", "/logout").status == 405
    assert browser.ask("HEAD", "/logout").status == 405
    assert browser.ask("GET", "/jobs").status == 200
    for method in ("PUT", "OPTIONS", "TRACE", "PROPFIND", "CONNECT"):
        reply = browser.ask(method, "/api/jobs")
        assert reply.status in (400, 405), (method, reply)
        assert "evil" not in reply.text and not reply.header("Access-Control-Allow-Origin")


def test_a_cookie_is_hidden_from_scripts_and_other_sites(hall, web):
    reply = web.ask("POST", "/login", form(token=hall.token), {"Content-Type": FORM})
    parts = [part.strip() for part in reply.header("Set-Cookie").split(";")]
    assert re.fullmatch("assay_session=[0-9a-f]{32}", parts[0])
    assert {"HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=1209600"} == set(parts[1:])
    assert parts[0].split("=")[1] not in web.by(hall.token, "GET", "/").text
    # Behind a proxy that speaks TLS, it is Secure, too: tests/e2e/test_serve_proxy.py.


def test_a_planted_cookie_is_nobodys(hall, web):
    planted = "assay_session=" + "a" * 32
    reply = web.ask("GET", "/login", None, {"Cookie": planted})
    assert not reply.header("Set-Cookie")
    signed = web.ask("POST", "/login", form(token=hall.token),
                     {"Content-Type": FORM, "Cookie": planted})
    given = signed.header("Set-Cookie").split(";")[0]
    assert signed.status == 303 and given != planted
    assert web.ask("GET", "/jobs", None, {"Cookie": planted}).status == 303
    # A second sign-in gives another session.
    browser = Browser(web, given)
    again = browser.send("/login", token=hall.token)
    assert again.status == 303 and again.header("Set-Cookie").split(";")[0] != given


def test_a_session_ends_with_its_sign_out(hall, web):
    first, second = web.sign_in(hall.token), web.sign_in(hall.token)
    out = first.send("/logout")
    assert out.status == 303 and "Max-Age=0" in out.header("Set-Cookie")
    assert first.ask("GET", "/jobs").header("Location") == "/login?next=%2Fjobs"
    assert first.ask("GET", "/api/me").status == 401
    assert first.send("/submit", **JOB).status in (401, 403)
    assert second.ask("GET", "/jobs").status == 200


def test_all_sessions_and_tokens_end_at_once(hall, web):
    token = member(web, hall.token, "student 9 (example)")
    browser = web.sign_in(token)
    renewed = web.by(token, "DELETE", "/api/me/tokens").json["token"]
    assert browser.ask("GET", "/api/me").status == 401
    assert web.by(token, "GET", "/api/me").status == 401
    assert web.by(renewed, "GET", "/api/me").status == 200


def test_no_address_carries_a_token(hall, web):
    browser = web.sign_in(hall.token)
    session = browser.cookie.split("=")[1]
    for secret in (hall.token, session):
        for name in ("token", "access_token", "assay_session", "session", "authorization"):
            assert web.ask("GET", f"/api/me?{name}={secret}").status == 401
            assert web.ask("GET", f"/jobs?{name}={secret}").status == 303
            wanted = web.ask("POST", f"/login?{name}={secret}", "", {"Content-Type": FORM})
            assert wanted.status == 401 and not wanted.header("Set-Cookie")
    assert hall.token not in browser.ask("GET", "/").text


def test_a_stolen_cookie_has_its_owners_rights_alone(hall, web):
    mentor = web.sign_in(hall.token)
    student = web.sign_in(member(web, hall.token, "student 8 (example)"))
    assert student.ask("GET", "/api/accounts").status == 403
    # With the mentor's field it is nobody's form.
    body = form(csrf=mentor.csrf, name="x", jobs_a_day=1)
    assert student.ask("POST", "/classes", body, {"Content-Type": FORM}).status == 403
    assert student.send("/classes", name="x", jobs_a_day=1).status == 403
    for cookie in (student.cookie.upper(), student.cookie + "0", student.cookie[:-1],
                   student.cookie.replace("=", "=\""), "assay_session=" + hall.token,
                   "assay_session=%; " + student.cookie, student.cookie + "' OR 1=1 --"):
        assert web.ask("GET", "/api/me", None, {"Cookie": cookie}).status == 401, cookie
    for value in (student.cookie.split("=")[1], "", "Bearer", hall.token[:-1], hall.token.upper(),
                  hall.token + "0"):
        asked = web.ask("GET", "/api/me", None, {"Authorization": f"Bearer {value}"})
        assert asked.status in (401, 429), value


def protects(reply, what):
    for name, value in PROTECTS.items():
        assert reply.header(name) == value, (what, name, reply)
    policy = reply.header("Content-Security-Policy")
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy, (what, reply)
    assert "unsafe" not in policy and "*" not in policy and "http" not in policy, (what, policy)
    for name in ("Access-Control-Allow-Origin", "Server", "X-Powered-By"):
        assert reply.header(name) == "", (what, reply)
    if "html" in reply.header("Content-Type"):
        assert "charset=utf-8" in reply.header("Content-Type")
        assert "base-uri 'none'" in policy and "form-action 'self'" in policy, policy


class Head:
    """The head of a reply as it came by a socket."""

    def __init__(self, received):
        lines = received.split(b"\r\n\r\n")[0].decode().split("\r\n")
        self.status = int(lines[0].split(" ")[1])
        self.headers = [line.split(": ", 1) for line in lines[1:]]

    def header(self, name):
        return ", ".join(value for each, value in self.headers if each.lower() == name.lower())

    def __repr__(self):
        return f"{self.status} {self.headers}"


def test_every_reply_has_the_headers_that_protect(hall, web):
    bearer = {"Authorization": f"Bearer {hall.token}"}
    seen = set()
    for method, path, headers, body in (
        *((method, path.replace("{id}", "1").replace("{name}", "softmax"), bearer, None)
          for method, _, path in routes() if method == "GET" and "events" not in path),
        ("GET", "/", {}, None), ("GET", "/nowhere", bearer, None), ("GET", "/api/x", bearer, None),
        ("PUT", "/", bearer, None), ("GET", "/%2e%2e/", bearer, None),
        ("GET", "/api/me", {"Authorization": "Bearer x"}, None),
        ("POST", "/api/jobs", {}, "{}"), ("POST", "/api/jobs", bearer, "no JSON"),
        ("POST", "/login", {"Content-Type": FORM}, "token=x"), ("HEAD", "/", bearer, None),
        ("POST", "/api/runner/take", bearer, json.dumps({"runner": "n", "device": "cuda:7"})),
        ("POST", "/api/jobs", bearer | {"Content-Length": "9999999"}, None),
        ("GET", "/login", {"Host": "evil.example"}, None),
        ("POST", "/login", {"Content-Type": "multipart/form-data; boundary=x"}, "none"),
    ):
        reply = web.ask(method, path, body, headers)
        protects(reply, (method, path))
        seen.add(reply.status)
    for sent in (b"nonsense\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
                 b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 20000 + b"\r\n\r\n",
                 b"POST /api/jobs HTTP/1.1\r\nContent-Length: x\r\n\r\n"):
        reply = Head(raw(web, sent, 5))
        protects(reply, sent[:60])
        seen.add(reply.status)
    assert {200, 204, 303, 400, 401, 403, 404, 405, 413, 431} <= seen, seen


def test_a_stream_has_the_headers_that_protect(hall, web):
    job = web.by(hall.token, "POST", "/api/jobs", JOB).json["job"]["id"]
    request = (f"GET /api/jobs/{job}/events HTTP/1.1\r\nHost: 127.0.0.1:{web.port}\r\n"
               f"Authorization: Bearer {hall.token}\r\nAccept: text/event-stream\r\n\r\n")
    with connected(web, 10) as connection:
        connection.sendall(request.encode())
        received = connection.recv(65536)
        web.by(hall.token, "DELETE", f"/api/jobs/{job}")
        began = time.monotonic()
        received += rest(connection)
    assert time.monotonic() - began < 8, "a stream ends with its job, and waits for nothing"
    protects(Head(received), "stream")
    assert b"cancelled" in received
    whole = web.by(hall.token, "GET", f"/api/jobs/{job}/events")
    protects(whole, "events at once")
