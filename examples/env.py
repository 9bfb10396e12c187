"""Episodes of `assay env`: an answerer writes kernels, the judge rewards them.

Usage: python3 examples/env.py [PROGRAM], with the package `assay` installed, or python/ in
PYTHONPATH. `answer` stands for the model: it sees messages in the form of chat endpoints, and
returns a text with a fenced block of code.
"""

import pathlib
import sys

import assay

ROOT = pathlib.Path(__file__).resolve().parents[1]


def answer(messages, turn):
    """A recorded model: first a slow kernel, then a fast one."""
    assert messages[-1]["role"] == "user"
    kernel = ROOT / "kernels" / "softmax" / ("naive.cpp", "fused.cpp")[turn]
    return f"```cpp\n{kernel.read_text(encoding='utf-8')}```"


def main(program=None):
    with assay.Episodes("--turns", "2", program=program) as episodes:
        event = episodes.ask("reset", problem="softmax", size="tiny")
        while not event["done"]:
            text = answer(event["messages"], event["turn"])
            event = episodes.ask("step", episode=event["episode"], text=text)
            print(event["turn"], event["outcome"], event["reward"], event["message"])


if __name__ == "__main__":
    main(*sys.argv[1:])
