"""A model asks `profile` of `assay mcp` about its kernel: counters of a real GPU."""
import json
import subprocess

from conftest import ASSAY
from test_profile import HONEST, needs_ncu


def call(number, method, params):
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    return json.dumps(message) + "\n"


@needs_ncu
def test_counters_of_a_models_kernel(tmp_path):
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}
    arguments = {"problem": "softmax", "size": "small", "language": "cuda", "source": HONEST}
    arguments["wait_s"] = 120
    words = [ASSAY, "mcp", "--device", "cuda", "--budget", "2", "--archive", tmp_path / "archive"]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tmp_path
    ) as server:
        server.stdin.write(call(1, "initialize", hello))
        server.stdin.write('{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        server.stdin.write(call(2, "tools/call", {"name": "profile", "arguments": arguments}))
        server.stdin.flush()
        answers = (json.loads(line) for line in server.stdout)
        result = next(answer["result"] for answer in answers if answer.get("id") == 2)
        server.stdin.close()
    told = result["structuredContent"]
    assert told["state"] == "done" and told["correct"], told
    text = json.dumps(told)
    assert "rows_of" in text and "%" in text, text
