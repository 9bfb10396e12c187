"""assay env: episodes on JSON lines."""
import json
import subprocess

import pytest

from conftest import ASSAY, GOOD, ROOT, USAGE, fits

KERNELS = ROOT / "kernels" / "softmax"


@pytest.fixture
def environment(assay):
    """Asks an environment whose process ends with the test."""
    command = [ASSAY, "env", "softmax", "--size", "tiny", "--turns", "2", "--formula", "kevin"]
    pipe = subprocess.PIPE
    process = subprocess.Popen([*command, "--budget", "0.5", "--threads", "1"], stdin=pipe,
                               stdout=pipe, text=True, env=assay.environment)

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
    if process.poll() is None:
        process.stdin.close()
    assert process.wait(timeout=30) == GOOD


def answered(name):
    return f"Like this:\n```cpp\n{(KERNELS / name).read_text()}```\n"


def test_two_episodes(environment):
    first = environment("reset", seed=3)
    assert first["event"] == "episode" and first["problem"]["size"] == "tiny"
    prompt = first["messages"][-1]["content"]
    assert "assay::Tensor<const float, 2> x" in prompt and "return torch.softmax" in prompt
    second = environment("fork", episode=first["episode"])
    wrong, without = environment(
        "step",
        steps=[
            {"episode": first["episode"], "text": answered("off_by_one.cpp")},
            {"episode": second["episode"], "text": "I would rather not."},
        ],
    )["steps"]
    assert wrong["outcome"] == "wrong" and wrong["reward"] == 0 and not wrong["done"]
    assert "only the last column" in wrong["messages"][-1]["content"]
    assert without["outcome"] == "no_code" and without["reward"] == 0
    right = environment("step", episode=first["episode"], text=answered("naive.cpp"))
    assert right["rewards"]["correct"] and right["done"] and right["id"] == "7"
    assert right["reward"] is None or right["reward"] > 0.3
    again = environment("step", episode=second["episode"], text=answered("off_by_one.cpp"))
    assert again["cached"] and again["outcome"] == "wrong" and again["done"]
    late = environment("step", episode=second["episode"], text="more")
    assert late["event"] == "error" and late["kind"] == "usage"
    assert environment("shutdown")["event"] == "ended"


def test_an_unknown_problem_is_refused_at_once(assay):
    run = assay("env", "softmaxx")
    assert run.code == USAGE and "softmax" in run.err and run.out == ""
