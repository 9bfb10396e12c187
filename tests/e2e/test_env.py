"""assay env: episodes on JSON lines."""
import json
import signal
import subprocess
import urllib.error
import urllib.request

import pytest

from conftest import ASSAY, GOOD, INTERRUPTED, ROOT, USAGE, Assay, fits
from test_gradients import KERNEL

KERNELS = ROOT / "kernels" / "softmax"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return Assay(tmp_path_factory.mktemp("env"))


@pytest.fixture(scope="module")
def environment(home):
    """Asks one environment, which is shut down at the end."""
    command = [ASSAY, "env", "softmax", "--size", "tiny", "--turns", "2", "--formula", "kevin"]
    pipe = subprocess.PIPE
    process = subprocess.Popen([*command, "--budget", "0.5", "--threads", "1"], stdin=pipe,
                               stdout=pipe, text=True, env=home.environment)

    def listen():
        event = json.loads(process.stdout.readline())
        fits(event, "env")
        return event

    def ask(request, **fields):
        line = {"id": "7", "request": request, **fields}
        fits(line, "env")
        process.stdin.write(json.dumps(line) + "\n")
        process.stdin.flush()
        return listen()

    assert listen()["problems"] == ["softmax"]
    yield ask
    assert ask("shutdown")["event"] == "ended"
    assert process.wait(timeout=30) == GOOD


def answered(name):
    return f"Like this:\n```cpp\n{(KERNELS / name).read_text()}```\n"


def test_two_episodes(environment, home):
    first = environment("reset", seed=3)
    assert first["event"] == "episode" and first["problem"]["size"] == "tiny"
    prompt = first["messages"][-1]["content"]
    assert "assay::Tensor<const float, 2> x" in prompt and "return torch.softmax" in prompt
    second = environment("fork", episode=first["episode"])
    third = environment("fork", episode=first["episode"])
    wrong, without, right = environment(
        "step",
        steps=[
            {"episode": first["episode"], "text": answered("off_by_one.cpp")},
            {"episode": second["episode"], "text": "I would rather not."},
            {"episode": third["episode"], "text": answered("naive.cpp")},
        ],
    )["steps"]
    assert wrong["outcome"] == "wrong" and wrong["reward"] == 0 and not wrong["done"]
    assert "only the last column" in wrong["messages"][-1]["content"]
    assert without["outcome"] == "no_code" and without["reward"] == 0
    assert right["rewards"]["correct"] and not right["cached"]
    assert right["reward"] is None or right["reward"] > 0.3
    # What stayed open is judged again.
    repaired = environment("step", episode=first["episode"], text=answered("naive.cpp"))
    assert repaired["rewards"]["correct"] and repaired["done"] and repaired["id"] == "7"
    assert repaired["cached"] == (right["reward"] is not None)
    again = environment("step", episode=second["episode"], text=answered("off_by_one.cpp"))
    assert again["cached"] and again["outcome"] == "wrong" and again["done"]
    late = environment("step", episode=second["episode"], text="more")
    assert late["event"] == "error" and late["kind"] == "usage"
    lines = [json.loads(line) for line in home("archive", "export", "-").out.splitlines()]
    for line in lines:
        fits(line, "archive")
    kept = [line["episode"] for line in lines if line["kind"] == "episode"]
    assert [event["what"] for event in kept] == ["reset", "fork", "fork"] + 5 * ["step"]
    assert kept[4]["outcome"] == "no_code" and kept[4]["answer"] == "I would rather not."
    verdicts = [line["id"] for line in lines if line["kind"] == "verdict"]
    assert [kept[3]["verdict"], kept[5]["verdict"]] == verdicts[:2]
    assert kept[7]["verdict"] == verdicts[0] and kept[7]["cached"]


def test_an_episode_on_gradients(environment):
    begun = environment("reset", problem="softmax", size="tiny", grad=True)
    assert begun["problem"]["name"] == "softmax_gradients"
    assert "const float, 2> gradient_1" in begun["messages"][-1]["content"]
    step = environment("step", episode=begun["episode"], text=f"```cpp\n{KERNEL}```\n")
    assert step["rewards"]["correct"], step
    forward = environment("reset", problem="softmax", size="tiny")
    step = environment("step", episode=forward["episode"], text=f"```cpp\n{KERNEL}```\n")
    assert not step["rewards"]["correct"] and not step["cached"], step


def test_an_unknown_problem_is_refused_at_once(assay):
    run = assay("env", "softmaxx")
    assert run.code == USAGE and "softmax" in run.err and run.out == ""


def test_http_needs_the_token(assay, tmp_path):
    token_file = tmp_path / "token"
    process = assay.start("env", "softmax", "--http", "0", "--token-file", token_file)
    address = process.stdout.readline().strip()
    token = token_file.read_text().strip()
    assert len(token) == 32 and token_file.stat().st_mode & 0o777 == 0o600

    def ask(path="/", body=None, **headers):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(address + path, data, headers)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    bearer = {"Authorization": f"Bearer {token}"}
    for status, event in (
        ask("/ready"),
        ask("/", {"request": "shutdown"}),
        ask("/", {"request": "shutdown"}, Authorization="Bearer " + "0" * 32),
        ask("/", {"request": "shutdown"}, Authorization=f"Basic {token}"),
    ):
        assert status == 401 and event["event"] == "error"
    assert ask("/ready", Host="evil.example", **bearer)[0] == 403
    status, ready = ask("/ready", **bearer)
    assert status == 200 and ready["problems"] == ["softmax"]
    status, event = ask("/", {"request": "step", "episode": "e1", "text": "x"}, **bearer)
    assert status == 400 and "no episode" in event["message"]
    assert ask("/elsewhere", **bearer)[0] == 404
    assert ask("/", {"request": "shutdown"}, **bearer) == (200, {"id": "", "event": "ended"})
    assert process.wait(timeout=20) == GOOD
    assert token not in process.stdout.read() + process.stderr.read()


def test_a_terminal_that_is_closed_is_an_interruption(assay, tmp_path):
    kept = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup its children ignore it
    try:
        process = assay.start("env", "softmax", "--http", "0", "--token-file", tmp_path / "token")
    finally:
        signal.signal(signal.SIGHUP, kept)
    assert "http://" in process.stdout.readline()
    process.send_signal(signal.SIGHUP)
    assert process.wait(timeout=20) == INTERRUPTED
