"""A client of `assay env`: requests and events as JSON lines."""

import json
import subprocess

PROGRAM = "assay"
ARGUMENTS = ["@ARGUMENTS@"]  # the problem, then options of `assay env`


class Episodes:
    """One process of `assay env`. Its requests are answered one after the other."""

    def __init__(self, *more, program=PROGRAM, arguments=tuple(ARGUMENTS)):
        command = [program, "env", *arguments, *more]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        self.ready = self._event()

    def _event(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"assay env ended with exit code {self.process.wait()}")
        return json.loads(line)

    def ask(self, request, **fields):
        """Returns the event of the request. Raises RuntimeError with the message of an error."""
        self.process.stdin.write(json.dumps({"request": request, **fields}) + "\n")
        self.process.stdin.flush()
        event = self._event()
        if event["event"] == "error":
            raise RuntimeError(event["message"])
        return event

    def close(self):
        self.ask("shutdown")
        self.process.wait(timeout=60)
