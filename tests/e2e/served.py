"""Tools of tests that ask a running server: one client, sessions of browsers, and raw sockets."""
import contextlib
import http.client
import json
import re
import socket
import time
import urllib.parse

from conftest import SOFTMAX_BODY

FORM = "application/x-www-form-urlencoded"
WAITS_S = 30


def softmax_source():
    head = "#include <assay/kernel.h>\n#include <cmath>\n"
    arguments = "assay::Tensor<const float, 2> x, assay::Tensor<float, 2> y"
    return f"{head}ASSAY_KERNEL({arguments}) {{{SOFTMAX_BODY}}}\n"


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body
        self.text = body.decode(errors="replace")

    def header(self, name):
        """All values of a header, in one text."""
        return ", ".join(value for each, value in self.headers if each.lower() == name.lower())

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {self.headers} {self.text[:600]}"


class Web:
    """Asks the server at `url`, over one connection. What is asked too often is asked again."""

    def __init__(self, url):
        self.url = url
        self.host, self.port = urllib.parse.urlsplit(url).netloc.split(":")
        self.port = int(self.port)
        self.connection = None

    def ask(self, method, path, body=None, headers=None):
        headers = dict(headers or {})
        if isinstance(body, dict):
            body = json.dumps(body)
        if isinstance(body, str):
            body = body.encode()
        for _ in range(60):
            if self.connection is None:
                self.connection = http.client.HTTPConnection(self.host, self.port, timeout=WAITS_S)
            try:
                self.connection.request(method, path, body, headers)
                answer = self.connection.getresponse()
                reply = Reply(answer.status, answer.getheaders(), answer.read())
            except (http.client.HTTPException, ConnectionError):
                self.connection.close()
                self.connection = None
                continue
            if reply.status == 429 and "too many requests" in reply.text:
                time.sleep(1)
                continue
            return reply
        raise AssertionError(f"no answer to {method} {path}")

    def by(self, token, method, path, body=None):
        return self.ask(method, path, body, {"Authorization": f"Bearer {token}"})

    def sign_in(self, token):
        reply = self.ask("POST", "/login", form(token=token), {"Content-Type": FORM})
        assert reply.status == 303, reply
        return Browser(self, reply.header("Set-Cookie").split(";")[0])


class Browser:
    """A session. `csrf` is the field that its own forms carry."""

    def __init__(self, web, cookie):
        self.web, self.cookie = web, cookie
        found = re.search('name="csrf" value="([0-9a-f]+)"', self.ask("GET", "/submit").text)
        self.csrf = found.group(1) if found else ""

    def ask(self, method, path, body=None, headers=None):
        return self.web.ask(method, path, body, {"Cookie": self.cookie} | (headers or {}))

    def send(self, path, **fields):
        return self.ask("POST", path, form(csrf=self.csrf, **fields), {"Content-Type": FORM})


def form(**fields):
    return urllib.parse.urlencode(fields)


def member(web, token, name, role="student"):
    """The token of a new account, which `token`, a mentor's, makes."""
    reply = web.by(token, "POST", "/api/accounts", {"name": name, "role": role})
    assert reply.status == 201, reply
    return reply.json["token"]


@contextlib.contextmanager
def connected(web, seconds=WAITS_S):
    with socket.create_connection((web.host, web.port), timeout=seconds) as connection:
        yield connection


def raw(web, data, seconds=WAITS_S):
    """All that the server sends back to these bytes before it ends the connection, or is silent."""
    with connected(web, seconds) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(data)
        return rest(connection)


def rest(connection):
    received = b""
    with contextlib.suppress(TimeoutError, ConnectionError):
        while part := connection.recv(65536):
            received += part
    return received


def statuses(received):
    """The statuses of the replies in what was received."""
    return [int(each) for each in re.findall(rb"HTTP/1\.1 (\d{3}) ", received)]
