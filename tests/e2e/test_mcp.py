"""assay mcp: the tools of a language model's program, on lines of JSON-RPC."""
import json
import signal
import subprocess

import jsonschema
import pytest

from conftest import ASSAY, ENVIRONMENT, GOOD, INTERRUPTED, ROOT, USAGE, Assay
from test_gradients import KERNEL

KERNELS = ROOT / "kernels" / "softmax"
OPTIONS = ["--device", "cpu", "--threads", "1", "--budget", "0.5"]


class Client:
    """Talks to one server, and holds each answer against the tool's own schema."""

    def __init__(self, home, *options):
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [ASSAY, "mcp", *OPTIONS, *options],
            stdin=pipe, stdout=pipe, stderr=pipe, env=home.environment, cwd=home.home,
        )  # fmt: skip
        self.next_id = 0
        self.notes = []
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}
        assert self.ask("initialize", hello)["protocolVersion"] == "2025-11-25"
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.tools = {tool["name"]: tool for tool in self.ask("tools/list", {})["tools"]}

    def write(self, message):
        text = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.process.stdin.write(text + b"\n")
        self.process.stdin.flush()

    def read(self):
        return json.loads(self.process.stdout.readline())

    def send(self, method, params):
        self.next_id += 1
        message = {"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params}
        self.write(message)
        return self.next_id

    def ask(self, method, params):
        asked = self.send(method, params)
        while (answer := self.read()).get("id") != asked:
            self.notes.append(answer)
        return answer["result"]

    def call(self, tool, **arguments):
        """The facts, or the text of an error."""
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        facts = result.get("structuredContent")
        if facts is not None:
            jsonschema.validate(facts, self.tools[tool]["outputSchema"])
        return facts if facts is not None else result["content"][0]["text"]

    def end(self):
        self.process.stdin.close()
        return self.process.wait(timeout=30)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return Assay(tmp_path_factory.mktemp("mcp"))


@pytest.fixture(scope="module")
def client(home):
    client = Client(home, "--session", "tests")
    yield client
    assert client.end() == GOOD


def kernel(name, **more):
    source = (KERNELS / name).read_text()
    return {"problem": "softmax", "size": "tiny", "language": "cpp", "source": source, **more}


def attempts(home):
    """The calls in the archive, oldest first."""
    out = home.home / "attempts.jsonl"
    out.unlink(missing_ok=True)
    assert home("archive", "export", out).code == GOOD
    notes = [json.loads(line) for line in out.read_text().splitlines()]
    texts = [note["text"] for note in notes if note["kind"] == "note"]
    return [json.loads(text) for text in texts]


def test_a_model_writes_a_kernel(client, home):
    (listed,) = [each for each in client.call("problem_list", level=1)["problems"]
                 if each["name"] == "softmax"]  # fmt: skip
    assert "tiny" in listed["sizes"]
    problem = client.call("problem_get", problem="softmax", size="tiny")
    assert "torch.softmax" in problem["reference"] and "ASSAY_KERNEL" in problem["entry"]
    assert any(line.startswith("input x float32[") for line in problem["signature"])
    wrong = client.call("kernel_check", **kernel("off_by_one.cpp", wait_s=60))
    assert wrong["outcome"] == "wrong" and not wrong["correct"]
    assert "only the last column" in wrong["feedback"] and "kernel_check" in wrong["next"]
    right = client.call("kernel_judge", **kernel("naive.cpp"))
    assert right["state"] in ("queued", "running")
    right = client.call("job_status", job=right["job"], wait_s=60)
    assert right["state"] == "done" and right["correct"]
    told = client.call("explain", verdict=wrong["verdict"])
    assert told["text"] == wrong["feedback"]
    both = client.call("compare", a=wrong["job"], b=right["verdict"])
    assert both["same_question"] and both["diff"].startswith("--- a")
    recorded = attempts(home)
    assert [each["what"] for each in recorded if each.get("job") == right["job"]] == [
        "asked", "began", "ended"
    ]  # fmt: skip
    assert recorded[-1]["tool"] == "compare" and recorded[-1]["session"] == "tests"


def test_a_model_writes_both_passes(client):
    backward = {"problem": "softmax", "size": "tiny", "grad": True}
    problem = client.call("problem_get", **backward)
    assert problem["problem"] == "softmax_gradients" and "gradient_1" in problem["entry"]
    assert "assay_host" not in problem["reference"]
    source = {"language": "cpp", "source": KERNEL, "wait_s": 60}
    right = client.call("kernel_check", **backward, **source)
    assert right["outcome"] == "correct", right
    times = client.call("profile", **backward, wait_s=60)
    assert times["state"] == "done" and "softmax_backward" in times["text"], times


def test_errors_say_what_to_do(client):
    assert "did you mean 'softmax'" in client.call("problem_get", problem="softmaxx")
    assert "size" in client.call("problem_get", problem="softmax", size="enormous")
    assert "takes no 'sise'; did you mean 'size'" in client.call("profile", problem="a", sise="b")
    gone = client.call("job_status", job="job-00000000")
    assert "there is no job-00000000" in gone
    broken = client.call("kernel_check", problem="softmax", size="tiny", language="cpp",
                         source="int x = ;", wait_s=60)  # fmt: skip
    assert broken["outcome"] == "build_failed" and "lines" in broken["next"]


def test_a_cancelled_call_ends_its_work(client):
    asked = client.send("tools/call", {"name": "kernel_judge",
                        "arguments": kernel("naive.cpp", budget_s=60, wait_s=100)})  # fmt: skip
    client.write({"jsonrpc": "2.0", "method": "notifications/cancelled",
                  "params": {"requestId": asked}})  # fmt: skip
    # The seat is free again, and nobody answers the cancelled call.
    checked = client.call("kernel_check", **kernel("naive.cpp", wait_s=60))
    assert checked["outcome"] == "correct"
    assert asked not in [note.get("id") for note in client.notes]


def test_garbage_and_huge_lines(client):
    client.write(b"garbage \xff\xfe")
    assert client.read()["error"]["code"] == -32700
    client.write(b"[" * 1_000_000)
    assert client.read()["error"]["code"] == -32700
    client.write(b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * (20 << 20) + b'"}')
    assert "8 MiB" in client.read()["error"]["message"]
    assert client.ask("ping", {}) == {}


def test_a_budget_lasts_from_server_to_server(home):
    options = ["--session", "short", "--calls", "2", "--seconds", "100", "--job-seconds", "40"]
    first = Client(home, *options)
    checked = first.call("kernel_check", **kernel("naive.cpp", wait_s=60))
    assert checked["outcome"] == "correct" and checked["budget"]["calls_left"] == 1
    assert first.end() == GOOD
    second = Client(home, *options)
    # A job of the server before is known by its handle.
    known = second.call("job_status", job=checked["job"])
    assert known["verdict"] == checked["verdict"] and known["budget"]["calls_left"] == 1
    assert known["budget"]["seconds_left"] < 100
    assert second.call("explain", verdict=checked["job"])["outcome"] == "correct"
    judged = second.call("kernel_judge", **kernel("naive.cpp"))
    assert judged["budget"]["calls_left"] == 0
    assert "2 of 2 calls" in second.call("kernel_check", **kernel("naive.cpp"))
    # Its stdin is closed in the middle of a judgement.
    assert second.end() == GOOD
    last = [each for each in attempts(home) if each.get("job") == judged["job"]][-1]
    assert last["state"] == "cancelled"


def test_two_clients_at_once(home):
    clients = [Client(home) for _ in range(2)]
    sent = [client.call("kernel_check", **kernel(name, wait_s=0))
            for client, name in zip(clients, ("naive.cpp", "off_by_one.cpp"))]  # fmt: skip
    outcomes = [client.call("job_status", job=each["job"], wait_s=100)["outcome"]
                for client, each in zip(clients, sent)]  # fmt: skip
    assert outcomes == ["correct", "wrong"]
    # Each can explain verdicts of the other: both keep them in one archive.
    assert clients[1].call("explain", verdict=sent[0]["job"])["outcome"] == "correct"
    assert [client.end() for client in clients] == [GOOD, GOOD]


def test_interrupted_and_without_a_reader(home):
    client = Client(home)
    client.call("kernel_judge", **kernel("naive.cpp"))
    client.process.send_signal(signal.SIGTERM)
    assert client.process.wait(timeout=30) == INTERRUPTED
    client = Client(home)
    client.process.stdout.close()
    client.send("ping", {})
    assert client.process.wait(timeout=30) in (GOOD, ENVIRONMENT)


def test_the_stateless_revision_by_hand(home):
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}}  # fmt: skip
    lines = [{"jsonrpc": "2.0", "id": method, "method": method, "params": {"_meta": meta}}
             for method in ("server/discover", "tools/list", "initialize")]  # fmt: skip
    done = subprocess.run(
        [ASSAY, "mcp", *OPTIONS], input="".join(json.dumps(line) + "\n" for line in lines),
        capture_output=True, text=True, env=home.environment, timeout=60, check=True,
    )  # fmt: skip
    found, tools, gone = map(json.loads, done.stdout.splitlines())
    assert found["result"]["supportedVersions"] == ["2026-07-28"]
    assert found["result"]["resultType"] == "complete" and len(tools["result"]["tools"]) == 8
    assert gone["error"]["code"] == -32601


def test_counters_are_looked_for_at_the_start(home, tmp_path):
    ncu = tmp_path / "ncu"
    ncu.write_text("#!/bin/sh\nexit 1\n")
    ncu.chmod(0o755)

    def started(device, program):
        environment = {**home.environment, "ASSAY_NCU": str(program)}
        command = [ASSAY, "mcp", "--device", device]
        run = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                             timeout=60, env=environment)  # fmt: skip
        return run.returncode, run.stderr

    code, said = started("cuda", ncu)
    assert code == GOOD and "counters" not in said, said
    code, said = started("cuda", tmp_path / "nowhere")
    assert code == USAGE and "ASSAY_NCU names" in said, said
    code, said = started("cpu", tmp_path / "nowhere")
    assert code == GOOD, said
