"""Episodes of `assay env`: an answerer writes kernels, the judge rewards them.

Usage: python3 examples/env.py [ASSAY]. `answer` stands for the model: it sees messages in the form
of chat endpoints, and returns a text with a fenced block of code.
"""

import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


class Environment:
    def __init__(self, program, *arguments):
        command = [program, "env", *arguments]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        self.ready = json.loads(self.process.stdout.readline())

    def ask(self, request, **fields):
        self.process.stdin.write(json.dumps({"request": request, **fields}) + "\n")
        self.process.stdin.flush()
        event = json.loads(self.process.stdout.readline())
        if event["event"] == "error":
            raise RuntimeError(event["message"])
        return event


def answer(messages, turn):
    """A recorded model: first a slow kernel, then a fast one."""
    assert messages[-1]["role"] == "user"
    kernel = ROOT / "kernels" / "softmax" / ("naive.cpp", "fused.cpp")[turn]
    return f"```cpp\n{kernel.read_text(encoding='utf-8')}```"


def main():
    environment = Environment(sys.argv[1] if len(sys.argv) > 1 else "assay", "--turns", "2")
    event = environment.ask("reset", problem="softmax", size="tiny")
    while not event["done"]:
        text = answer(event["messages"], event["turn"])
        event = environment.ask("step", episode=event["episode"], text=text)
        print(event["turn"], event["outcome"], event["reward"], event["message"])
    environment.ask("shutdown")
    return environment.process.wait()


if __name__ == "__main__":
    sys.exit(main())
