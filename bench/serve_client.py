"""A server under test, and a small client of its routes, for serve_load.py and serve_kills.py."""

import atexit
import hashlib
import json
import pathlib
import signal
import socket
import subprocess
import time
import tomllib

STARTS_WITHIN_S = 60
VERDICTS = pathlib.Path(__file__).resolve().parent / "results/cpu-2core/kernel_verdicts.jsonl"
SUITE = pathlib.Path(__file__).resolve().parent.parent / "problems" / "suite.toml"
PROBLEM = "softmax"


def constants(size):
    """The constants of one of the problem's sizes, as a verdict has them."""
    for each in tomllib.loads(SUITE.read_text(encoding="utf-8"))["problem"]:
        if each["name"] == PROBLEM:
            return {name: str(value) for name, value in each["sizes"][size].items()}
    raise RuntimeError(f"{SUITE} has no {PROBLEM}")


def verdict_on(lease, number):
    """A measured verdict, as if it were on this job's source."""
    job = lease["job"]
    for line in VERDICTS.open(encoding="utf-8"):
        verdict = json.loads(line)
        if verdict["problem"]["name"] == PROBLEM and verdict["outcome"] == "faster":
            break
    source = job["candidate"]["source"].encode()
    verdict["candidate"]["hash"] = hashlib.sha256(source).hexdigest()
    size = job["problem"]["size"]
    verdict["problem"] |= {"hash": job["problem"]["hash"], "size": size, "set": constants(size)}
    verdict["id"] = f"{number:012x}"
    verdict["samples"] = []
    return verdict


class Server:
    """`assay serve` as a child process at one port, started as often as it is killed."""

    def __init__(self, program, folder, arguments=()):
        self.program = program
        self.folder = pathlib.Path(folder)
        self.arguments = list(arguments)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.process = None
        atexit.register(self.leave_nothing)

    def leave_nothing(self):
        """A server that still lives when the benchmark ends, such as by an error."""
        if self.process and self.process.poll() is None:
            self.kill()

    def start(self):
        log = open(self.folder.parent / "server.log", "ab")
        command = [self.program, "serve", str(self.folder), "--port", str(self.port)]
        self.process = subprocess.Popen(
            command + self.arguments, stdout=subprocess.PIPE, stderr=log, text=True
        )
        log.close()
        line = self.process.stdout.readline().strip()
        if not line.startswith("http://"):
            raise RuntimeError(f"the server did not start: see {self.folder.parent}/server.log")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=STARTS_WITHIN_S)

    def token(self, name):
        return (self.folder / name).read_text().strip()


class Client:
    """One connection, which is made again when it breaks. Raises OSError while nobody answers."""

    def __init__(self, port, token, timeout_s=40):
        self.port, self.token, self.timeout_s = port, token, timeout_s
        self.stream = None

    def close(self):
        if self.stream:
            self.stream.close()
        self.stream = None

    def ask(self, method, path, body=None):
        """Returns (status, JSON or text)."""
        status, reply = self.ask_bytes(method, path, body)
        try:
            return status, json.loads(reply)
        except ValueError:
            return status, reply.decode()

    def ask_bytes(self, method, path, body=None, more=""):
        """Returns (status, bytes). `more`: lines of the header."""
        try:
            return self._ask(method, path, body, more)
        except (OSError, ValueError, IndexError) as error:
            self.close()
            raise OSError(str(error)) from error

    def _ask(self, method, path, body, more):
        if self.stream is None:
            connection = socket.create_connection(("127.0.0.1", self.port), timeout=self.timeout_s)
            self.stream = connection.makefile("rwb")
            connection.close()
        text = b"" if body is None else json.dumps(body).encode()
        self.stream.write(
            (
                f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n"
                f"Authorization: Bearer {self.token}\r\nContent-Length: {len(text)}\r\n{more}\r\n"
            ).encode()
            + text
        )
        self.stream.flush()
        status = int(self.stream.readline().split()[1])
        length, closes = 0, False
        while (line := self.stream.readline().strip()) != b"":
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
            closes = closes or (name.lower() == b"connection" and value.strip() == b"close")
        reply = self.stream.read(length)
        if len(reply) != length:
            raise OSError("the reply broke off")
        if closes:
            self.close()
        return status, reply

    def ask_until_answered(self, method, path, body=None, until=None):
        """As `ask`, again and again while nobody answers or the server is at fault."""
        while True:
            try:
                status, reply = self.ask(method, path, body)
                if status < 500:
                    return status, reply
            except OSError:
                pass
            if until is not None and time.monotonic() > until:
                raise OSError("nobody answers")
            time.sleep(0.05)
