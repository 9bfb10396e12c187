"""Drives `assay worker`: judges 20 candidates of three problems, and prints what became of each.

Usage: python3 examples/worker.py [ASSAY]. The worker keeps a session a problem: PyTorch starts once
for each, and later candidates take a fraction of the first one's time.
"""

import json
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]


class Worker:
    def __init__(self, program):
        command = [program, "worker", "--device", "cpu"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        self.requests = 0

    def send(self, **request):
        self.requests += 1
        self.process.stdin.write(json.dumps({"id": str(self.requests), **request}) + "\n")
        self.process.stdin.flush()
        return str(self.requests)

    def judge(self, problem, path):
        """Returns the verdict. Raises RuntimeError where the machine cannot judge."""
        terms = {"problem": problem, "size": "tiny", "threads": 1}
        candidate = {"name": path.name, "source": path.read_text(encoding="utf-8")}
        number = self.send(request="judge", terms=terms, candidates=[candidate])
        verdict = None
        for line in self.process.stdout:
            event = json.loads(line)
            if event.get("id") != number:
                continue
            if event["event"] == "verdict":
                verdict = event["verdict"]
            elif event["event"] == "error":
                raise RuntimeError(event["message"])
            elif event["event"] == "done":
                return verdict
        raise RuntimeError("the worker has ended")


def main():
    worker = Worker(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/release/assay")
    problems = ("softmax", "matmul", "layer_norm")
    kernels = {name: sorted((ROOT / "kernels" / name).glob("*.cpp")) for name in problems}
    for i in range(20):
        problem = problems[i % 3]
        path = kernels[problem][i // 3 % len(kernels[problem])]
        begin = time.monotonic()
        verdict = worker.judge(problem, path)
        took_s = time.monotonic() - begin
        print(f"{problem:12} {path.name:16} {verdict['outcome']:10} {took_s:.1f} s")
    worker.send(request="shutdown")
    return worker.process.wait()


if __name__ == "__main__":
    sys.exit(main())
