"""assay serve behind nginx, by the configuration of docs/serve.md and a certificate of its own."""
import contextlib
import http.client
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import time

import pytest

from conftest import ROOT, Assay
from served import FORM, Web, form, softmax_source, statuses
from test_serve import Hall

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/sbin")
NAME = "board.example.org"
JOB = {"problem": "softmax", "name": "mine.cpp", "source": softmax_source()}
pytestmark = pytest.mark.skipif(not NGINX, reason="needs nginx: scripts/setup installs it")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def documented(folder, server_port, port):
    """The configuration of the documents, with this test's ports and files."""
    text = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")
    block = re.search(r"```\n(server \{.*?\n\})\n```", text, re.S).group(1)
    changes = {
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        "/etc/ssl/board.pem": f"{folder}/board.pem",
        "/etc/ssl/board.key": f"{folder}/board.key",
        "http://127.0.0.1:8080": f"http://127.0.0.1:{server_port}",
    }
    for there, here in changes.items():
        assert block.count(there) == 1, there
        block = block.replace(there, here)
    places = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = "\n".join(f"  {each}_temp_path {folder}/{each};" for each in places)
    # Its workers write where root alone may.
    user = "user root; " if os.geteuid() == 0 else ""
    return (f"{user}daemon off; pid {folder}/pid; error_log {folder}/error.log;\n"
            f"events {{ worker_connections 64; }}\n"
            f"http {{\n  access_log off;\n{paths}\n{block}\n}}\n")


class Proxy:
    def __init__(self, hall, folder, port):
        self.hall, self.port, self.url = hall, port, f"https://{NAME}"
        self.context = ssl.create_default_context(cafile=str(folder / "board.pem"))

    def open(self):
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        return self.context.wrap_socket(connection, server_hostname=NAME)

    def ask(self, method, path, body=None, headers=None):
        with contextlib.closing(http.client.HTTPSConnection(NAME, context=self.context)) as asked:
            asked.sock = self.open()
            body = json.dumps(body) if isinstance(body, dict) else body
            asked.request(method, path, body, headers or {})
            reply = asked.getresponse()
            return reply.status, reply.headers, reply.read().decode()

    def raw(self, data):
        received = b""
        with self.open() as connection, contextlib.suppress(TimeoutError, OSError):
            connection.settimeout(5)
            connection.sendall(data)
            while part := connection.recv(65536):
                received += part
        return received


@pytest.fixture(scope="module")
def proxy(tmp_path_factory):
    home = tmp_path_factory.mktemp("proxy")
    home.chmod(0o755)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                    "-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}",
                    "-keyout", str(home / "board.key"), "-out", str(home / "board.pem")],
                   check=True, capture_output=True)
    hall = Hall(Assay(home), home / "hall", "--behind-proxy")
    port = free_port()
    (home / "nginx.conf").write_text(documented(home, hall.url.rsplit(":", 1)[1], port))
    nginx = subprocess.Popen([NGINX, "-p", str(home), "-c", str(home / "nginx.conf")],
                             stderr=subprocess.PIPE, text=True)
    try:
        end = time.monotonic() + 20
        while time.monotonic() < end and nginx.poll() is None:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port)).close()
                break
            time.sleep(0.05)
        assert nginx.poll() is None, nginx.stderr.read()
        yield Proxy(hall, home, port)
    finally:
        nginx.terminate()
        nginx.communicate(timeout=20)
        hall.end()


def test_a_browser_signs_in_by_tls(proxy):
    origin = {"Origin": proxy.url, "Content-Type": FORM}
    status, headers, _ = proxy.ask("POST", "/login", form(token=proxy.hall.token), origin)
    assert status == 303 and headers["Location"] == "/"
    cookie = headers["Set-Cookie"]
    for part in ("HttpOnly", "SameSite=Strict", "Secure"):
        assert part in cookie.split("; "), cookie
    assert headers["Strict-Transport-Security"] == "max-age=31536000"
    cookie = {"Cookie": cookie.split(";")[0]}
    status, headers, page = proxy.ask("GET", "/submit", None, cookie)
    assert status == 200 and "default-src 'none'" in headers["Content-Security-Policy"]
    csrf = re.search('name="csrf" value="([0-9a-f]+)"', page).group(1)
    fields = form(csrf=csrf, **JOB)
    status, headers, _ = proxy.ask("POST", "/submit", fields, cookie | origin)
    assert status == 303 and re.fullmatch(r"/jobs/\d+", headers["Location"])
    for foreign in ("http://" + NAME, proxy.url + ":8443", "https://evil.example", "null"):
        sent = cookie | origin | {"Origin": foreign}
        assert proxy.ask("POST", "/submit", fields, sent)[0] == 403, foreign


def test_events_come_at_once_and_large_sources_pass(proxy):
    bearer = {"Authorization": f"Bearer {proxy.hall.token}"}
    whole = JOB | {"source": JOB["source"] + "//" + "x" * 1_000_000}
    status, _, text = proxy.ask("POST", "/api/jobs", whole, bearer)
    assert status == 202, text
    job = json.loads(text)["job"]["id"]
    head = (f"GET /api/jobs/{job}/events HTTP/1.1\r\nHost: {NAME}\r\nAccept: text/event-stream\r\n"
            f"Authorization: Bearer {proxy.hall.token}\r\n\r\n")
    with proxy.open() as stream:
        stream.sendall(head.encode())
        received = b""
        while b"queued" not in received:
            received += stream.recv(65536)
        began = time.monotonic()
        proxy.ask("DELETE", f"/api/jobs/{job}", None, bearer)
        while b"cancelled" not in received:
            received += stream.recv(65536)
        assert time.monotonic() - began < 5, "nothing is held back"
    assert statuses(received) == [200]
    too_large = JOB | {"source": "x" * 5_000_000}
    status, _, text = proxy.ask("POST", "/api/jobs", too_large, bearer)
    assert status == 413 and "the body is over 2048 KiB" in text, text


def test_the_server_itself_is_closed_to_plain_http(proxy):
    web = Web(proxy.hall.url)
    bearer = {"Authorization": f"Bearer {proxy.hall.token}"}
    for headers in ({"Host": NAME}, {"X-Forwarded-Proto": "http"}, {"X-Forwarded-For": "10.0.0.1"},
                    {"X-Forwarded-Proto": "https,http"}, {"X-Forwarded-Proto": "HTTPS "}):
        reply = web.ask("GET", "/api/me", None, bearer | headers)
        assert reply.status == 403, (headers, reply)
    # This machine's own runners ask it so.
    assert web.ask("GET", "/api/me", None, bearer).status == 200
    # Its word for the peer's address is the proxy's alone: wrong tokens are counted by that.
    for number in range(40):
        sent = {"Authorization": "Bearer " + "0" * 32, "X-Forwarded-For": f"10.0.0.{number}",
                "X-Forwarded-Proto": "http"}
        status, headers, _ = proxy.ask("GET", "/api/me", None, sent)
        if status == 429:
            break
    assert status == 429 and int(headers["Retry-After"]) >= 1
    assert proxy.ask("GET", "/api/me", None, bearer)[0] == 200


def test_proxy_and_server_see_the_same_requests(proxy):
    bearer = f"Authorization: Bearer {proxy.hall.token}"
    hidden = f"GET /api/me HTTP/1.1\r\nHost: {NAME}\r\n{bearer}\r\n\r\n"
    for lines in (["Transfer-Encoding: xchunked"], ["Transfer-Encoding: identity"],
                  ["Transfer-Encoding: chunked", "Content-Length: 4"],
                  ["Transfer-Encoding: chunked, identity"], ["Transfer-Encoding:\x0bchunked"],
                  ["Content-Length: 0", "Content-Length: 9"], ["Content-Length: 0, 9"],
                  ["Content-Length : 0"], ["X: y\nContent-Length: 0"], ["Host: evil.example"],
                  ["Content-Length: +0"], ["Transfer-Encoding : chunked"]):
        head = ["POST /api/me/tokens HTTP/1.1", f"Host: {NAME}", bearer, *lines]
        received = proxy.raw(("\r\n".join(head) + "\r\n\r\n0\r\n\r\n" + hidden).encode())
        assert b'"mentor"' not in received and len(statuses(received)) <= 2, (lines, received)
    assert proxy.ask("GET", "/login")[0] == 200
