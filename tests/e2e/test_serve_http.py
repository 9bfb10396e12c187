"""assay serve and peers that speak HTTP badly: slow, too much, cut off, or two things at once.
The server goes on with others meanwhile."""
import contextlib
import json
import socket
import threading
import time

import pytest

from conftest import Assay
from served import Web, connected, raw, rest, softmax_source, statuses
from test_serve import Hall

SOURCE_MAX, BODY_MAX = 1 << 20, 2 << 20


@pytest.fixture(scope="module")
def hall(tmp_path_factory):
    home = tmp_path_factory.mktemp("http")
    hall = Hall(Assay(home), home / "hall")
    yield hall
    hall.end()


@pytest.fixture(scope="module")
def web(hall):
    return Web(hall.url)


@pytest.fixture
def others(web, hall):
    """Asks the server all the time, by connections of its own: each is answered soon."""
    over, waits = threading.Event(), []

    def ask():
        while not over.is_set():
            began = time.monotonic()
            other = Web(hall.url)
            assert other.by(hall.token, "GET", "/api/me").status == 200
            other.connection.close()
            waits.append(time.monotonic() - began)
            time.sleep(0.05)

    thread = threading.Thread(target=ask)
    thread.start()
    yield waits
    over.set()
    thread.join()
    assert waits and max(waits) < 8, waits


def request(web, hall, first="GET /api/me HTTP/1.1", headers=(), body=b"", host=True):
    lines = [first, *([f"Host: 127.0.0.1:{web.port}"] if host else []),
             f"Authorization: Bearer {hall.token}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def test_bodies_are_framed_one_way(web, hall, others):
    """A text that a proxy may read as one request is never read as two."""
    hidden = request(web, hall)
    post = "POST /api/me/tokens HTTP/1.1"
    length = f"Content-Length: {len(hidden)}"
    framed = [
        ("length and chunks", [length, "Transfer-Encoding: chunked"], b"0\r\n\r\n" + hidden),
        ("chunks and length", ["Transfer-Encoding: chunked", "Content-Length: 5"],
         b"0\r\n\r\n" + hidden),
        ("chunks alone", ["Transfer-Encoding: chunked"], b"0\r\n\r\n" + hidden),
        ("chunks in capitals", ["TRANSFER-ENCODING: CHUNKED"], b"0\r\n\r\n" + hidden),
        ("chunks of another kind", ["Transfer-Encoding: xchunked"], b"0\r\n\r\n" + hidden),
        ("chunks, then none", ["Transfer-Encoding: chunked, identity"], b"0\r\n\r\n" + hidden),
        ("chunks, a second time", ["Transfer-Encoding: identity", "Transfer-Encoding: chunked"],
         b"0\r\n\r\n" + hidden),
        ("chunks after a space", ["Transfer-Encoding : chunked"], b"0\r\n\r\n" + hidden),
        ("chunks after a tab", ["Transfer-Encoding:\tchunked"], b"0\r\n\r\n" + hidden),
        ("chunks in a folded line", ["Transfer-Encoding:", " chunked"], b"0\r\n\r\n" + hidden),
        ("a chunk of a bad size", ["Transfer-Encoding: chunked"], b"zz\r\n" + hidden),
        ("two lengths", ["Content-Length: 0", length], hidden),
        ("two lengths in a line", [f"Content-Length: 0, {len(hidden)}"], hidden),
        ("a length with a sign", ["Content-Length: +0"], hidden),
        ("a length below 0", ["Content-Length: -1"], hidden),
        ("a length in hexadecimal", ["Content-Length: 0x0"], hidden),
        ("a length with a point", ["Content-Length: 0.0"], hidden),
        ("a length of words", ["Content-Length: none"], hidden),
        ("no length", ["Content-Length:"], hidden),
        ("a length over all bounds", ["Content-Length: 99999999999999999999999"], hidden),
        ("a length that wraps", ["Content-Length: 18446744073709551616"], hidden),
        ("a length after a space", ["Content-Length : 0"], hidden),
        ("a line feed alone", ["X: y\nContent-Length: 0"], hidden),
        ("a carriage return alone", ["X: y\rContent-Length: 0"], hidden),
        ("a null in a header", ["X: y\0z"], hidden),
        ("a null in a name", ["X\0Y: z"], hidden),
        ("a header without a name", [": z"], hidden),
        ("a header without a colon", ["Content-Length"], hidden),
        ("a name that is none", ["X(Y): z"], hidden),
        ("two hosts", ["Host: evil.example"], hidden),
    ]
    for what, headers, body in framed:
        received = raw(web, request(web, hall, post, headers, body), 5)
        got = statuses(received)
        assert len(got) == 1 and got[0] in (400, 403, 411, 413), (what, got, received[:400])
        assert b"mentor" not in received, what
    # A line that goes on is one header: the request has one body.
    folded = ["X: y", " Transfer-Encoding: chunked", length, "Connection: close"]
    received = raw(web, request(web, hall, post, folded, hidden), 5)
    assert statuses(received) in ([201], [400]), received
    for what, data in (
        ("no version", b"GET /api/me\r\n\r\n"),
        ("an old version", request(web, hall, "GET /api/me HTTP/0.9")),
        ("a new version", request(web, hall, "GET /api/me HTTP/2.0")),
        ("the preface of HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        ("a greeting of TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200)),
        ("bytes", bytes(range(256)) * 4),
        ("no host", request(web, hall, host=False)),
        ("a whole address", request(web, hall, "GET http://evil.example/api/me HTTP/1.1")),
        ("a star", request(web, hall, "OPTIONS * HTTP/1.1")),
        ("an authority", request(web, hall, "CONNECT evil.example:443 HTTP/1.1")),
        ("a space in the target", request(web, hall, "GET /api/me x HTTP/1.1")),
        ("a tab in the target", request(web, hall, "GET\t/api/me HTTP/1.1")),
        ("a method that is none", request(web, hall, "G(T /api/me HTTP/1.1")),
        ("a target of 20,000 bytes", request(web, hall, f"GET /{'a' * 20000} HTTP/1.1")),
        ("1,000 headers", request(web, hall, headers=[f"X-{i}: {'y' * 20}" for i in range(1000)])),
        ("a header of 20,000 bytes", request(web, hall, headers=["X: " + "y" * 20000])),
        ("another host", request(web, hall, headers=["Host: evil.example"], host=False)),
    ):
        received = raw(web, data, 1)
        got = statuses(received)
        assert len(got) <= 1 and set(got) <= {400, 403, 404, 405, 431}, (what, got)
        assert b'"mentor"' not in received, what


def test_requests_in_one_packet_are_answered_in_order(web, hall, others):
    wanted = ["/api/me", "/api/jobs", "/api/nowhere", "/api/runners", "/login"] * 4
    data = b"".join(request(web, hall, f"GET {path} HTTP/1.1") for path in wanted)
    data += request(web, hall, headers=["Connection: close"])
    received = raw(web, data, 20)
    assert statuses(received) == [200, 200, 404, 200, 200] * 4 + [200], received[:300]
    # A body that belongs to a request is no request.
    body = request(web, hall)
    got = request(web, hall, headers=[f"Content-Length: {len(body)}"], body=body)
    received = raw(web, got + request(web, hall, headers=["Connection: close"]), 10)
    assert statuses(received) == [200, 200]
    # In parts of a byte, it is the same request.
    with connected(web, 10) as connection:
        for byte in request(web, hall, headers=["Connection: close"]):
            connection.sendall(bytes([byte]))
        assert statuses(rest(connection)) == [200]


def test_what_is_too_large_is_refused_by_a_clear_message(web, hall, others):
    def post(source, **headers):
        body = json.dumps({"problem": "softmax", "name": "m.cpp", "source": source})
        bearer = {"Authorization": f"Bearer {hall.token}"}
        return web.ask("POST", "/api/jobs", body, bearer | headers)

    whole = softmax_source() + "//" + "x" * (SOURCE_MAX - len(softmax_source()) - 2)
    assert post(whole).status == 202
    refused = post(whole + "x")
    assert refused.status == 413 and "the source is over 1024 KiB" in refused.text
    # 5 MB: refused by the length alone, before the body is read.
    for size in (BODY_MAX + 1, 5_000_000, 1 << 40):
        head = request(web, hall, "POST /api/jobs HTTP/1.1", [f"Content-Length: {size}"])
        received = raw(web, head, 10)
        assert statuses(received) == [413] and b"the body is over " in received, received
    # With the body behind it, whole.
    data = request(web, hall, "POST /api/jobs HTTP/1.1", ["Content-Length: 5000000"],
                   b"x" * 5_000_000)
    received = raw(web, data, 10)
    assert statuses(received) == [413] and b"the body is over 2048 KiB" in received
    asked = request(web, hall, "POST /api/jobs HTTP/1.1",
                    ["Content-Length: 5000000", "Expect: 100-continue"])
    assert statuses(raw(web, asked, 10)) == [413], "nothing is asked for"
    # Nobody sends nothing.
    nobody = f"POST /api/jobs HTTP/1.1\r\nHost: 127.0.0.1:{web.port}\r\nContent-Length: 9\r\n\r\n"
    assert statuses(raw(web, nobody.encode(), 10)) == [401]


def test_a_body_that_is_cut_off_does_nothing(web, hall, others):
    before = len(web.by(hall.token, "GET", "/api/jobs").json["jobs"])
    body = json.dumps({"problem": "softmax", "name": "m.cpp", "source": "int a;"}).encode()
    head = request(web, hall, "POST /api/jobs HTTP/1.1", [f"Content-Length: {len(body)}"])
    for cut in (0, 1, len(body) // 2, len(body) - 1):
        with connected(web, 10) as connection:
            connection.sendall(head + body[:cut])
            connection.shutdown(socket.SHUT_WR)
            assert statuses(rest(connection)) in ([], [400])
    for cut in range(0, len(head), 23):
        with connected(web, 10) as connection:
            connection.sendall(head[:cut])
            connection.shutdown(socket.SHUT_WR)
            assert statuses(rest(connection)) in ([], [400])
    for data in (head, head + body[:9]):  # and a reset in the place of an end
        with connected(web, 10) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            connection.sendall(data)
    assert len(web.by(hall.token, "GET", "/api/jobs").json["jobs"]) == before


def trickle(connections, seconds, byte):
    """Sends a byte a second by each. Returns how many the server has cut off."""
    cut = set()
    end = time.monotonic() + seconds
    while time.monotonic() < end and len(cut) < len(connections):
        for connection in connections:
            with contextlib.suppress(BlockingIOError):
                try:
                    connection.sendall(byte)
                    if connection.recv(4096, socket.MSG_DONTWAIT) == b"":
                        cut.add(connection)
                except OSError as error:
                    if not isinstance(error, BlockingIOError):
                        cut.add(connection)
        time.sleep(1)
    return len(cut)


def test_slow_headers_are_cut_off(web, hall, others):
    """A slow-loris: 200 peers send a byte of their headers a second."""
    with contextlib.ExitStack() as stack:
        peers = [stack.enter_context(connected(web)) for _ in range(200)]
        for peer in peers:
            peer.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{web.port}\r\nX: ".encode())
        assert trickle(peers, 16, b"y") == len(peers), "10 s are enough for a header"


def test_many_idle_peers_keep_nobody_out(web, hall):
    """More connections than the server holds, all silent: the longest silent ones make room."""
    with contextlib.ExitStack() as stack:
        for _ in range(2300):
            stack.enter_context(connected(web))
        began = time.monotonic()
        for _ in range(5):
            other = stack.enter_context(connected(web, 30))
            other.sendall(request(web, hall, headers=["Connection: close"]))
            assert statuses(rest(other)) == [200]
        assert time.monotonic() - began < 30


@pytest.mark.thorough
def test_slow_bodies_are_cut_off(web, hall, others):
    with contextlib.ExitStack() as stack:
        peers = [stack.enter_context(connected(web)) for _ in range(50)]
        for peer in peers:
            peer.sendall(request(web, hall, "POST /api/jobs HTTP/1.1", ["Content-Length: 100000"]))
        assert trickle(peers, 45, b"y") == len(peers), "1,024 bytes a second are the least"
        # Those that read nothing of a large reply hold up nobody.
        for peer in [stack.enter_context(connected(web)) for _ in range(20)]:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            peer.sendall(request(web, hall, "GET /openapi.json HTTP/1.1") * 20)
        time.sleep(2)
