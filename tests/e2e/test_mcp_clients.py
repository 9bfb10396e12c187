"""assay mcp by clients that others wrote: the SDK of 2025-11-25, the one of 2026-07-28, and the
inspector. Needs node and `npm ci --ignore-scripts` in tests/mcp.
"""
import json
import shutil
import subprocess

import pytest

from conftest import ASSAY, ROOT, Assay
from test_mcp import OPTIONS, kernel

CLIENTS = ROOT / "tests" / "mcp"
INSPECTOR = CLIENTS / "node_modules" / ".bin" / "mcp-inspector-cli"

pytestmark = pytest.mark.skipif(
    not (CLIENTS / "node_modules").exists() or not shutil.which("node"),
    reason="needs node, and npm ci in tests/mcp",
)

NAMES = ["problem_list", "problem_get", "kernel_check", "kernel_judge", "job_status", "compare",
         "profile", "explain"]  # fmt: skip


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return Assay(tmp_path_factory.mktemp("clients"))


def calls():
    """A call of each tool, in an order in which each can succeed."""
    judged = kernel("naive.cpp", wait_s=0)
    return [
        ("problem_list", {"level": 1}),
        ("problem_get", {"problem": "softmax", "size": "tiny"}),
        ("kernel_check", kernel("naive.cpp", wait_s=60)),
        ("kernel_judge", judged),
        ("job_status", {"job": "$job", "wait_s": 60}),
        ("explain", {"verdict": "$job"}),
        ("compare", {"a": "$job", "b": "$job"}),
        ("profile", {"problem": "softmax", "size": "tiny", "wait_s": 60}),
    ]


@pytest.mark.parametrize("flags", [[], ["--stateless"]], ids=["2025-11-25", "2026-07-28"])
def test_sdk_clients_call_every_tool(home, flags):
    work = {"command": [str(ASSAY), "mcp", *OPTIONS],
            "calls": [{"name": name, "arguments": given} for name, given in calls()]}  # fmt: skip
    run = subprocess.run(
        ["node", "call.mjs", *flags], cwd=CLIENTS, env=home.environment, text=True, timeout=150,
        input=json.dumps(work), capture_output=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    said = json.loads(run.stdout)
    assert [tool["name"] for tool in said["tools"]] == NAMES
    results = dict(zip([name for name, _ in calls()], said["results"]))
    assert set(results) == set(NAMES)
    assert not [name for name, result in results.items() if result.get("isError")], results
    assert results["kernel_check"]["structuredContent"]["outcome"] == "correct"
    assert results["job_status"]["structuredContent"]["correct"]
    assert "softmax" in results["profile"]["structuredContent"]["text"]
    assert said["progress"] > 0
    if flags:
        assert said["version"] == "2026-07-28"


def inspect(home, method, *arguments):
    """The inspector starts a server for each call."""
    command = [str(INSPECTOR), "--cli", str(ASSAY), "mcp", *OPTIONS, "--session", "inspected"]
    run = subprocess.run(
        [*command, "--method", method, *arguments], cwd=CLIENTS, env=home.environment, text=True,
        capture_output=True, timeout=100, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_the_inspector_lists_and_calls_every_tool(home):
    assert [tool["name"] for tool in inspect(home, "tools/list")["tools"]] == NAMES
    job = ""
    for name, given in calls():
        words = ["--tool-name", name]
        for key, value in given.items():
            if key == "wait_s":
                value = 55  # the server ends with the call
            words += ["--tool-arg", f"{key}={value}".replace("$job", job)]
        result = inspect(home, "tools/call", *words)
        assert not result.get("isError"), result
        if name in ("kernel_check", "kernel_judge"):
            job = result["structuredContent"]["job"]
            assert result["structuredContent"]["correct"], result
