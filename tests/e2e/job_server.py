"""A server of jobs for the tests of its clients: a queue in memory that speaks the JSON of
docs/serve.md, and does what a test wants it to do wrong."""
import hashlib
import http.server
import json
import pathlib
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOKEN = "0123456789abcdef0123456789abcdef"
ENDED = ("done", "failed", "cancelled")


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


class JobServer:
    """Use it with `with`. Fields may be read and set while it serves."""

    def __init__(self, terms=None):
        self.terms = terms or {}
        self.jobs, self.takes, self.ends, self.requests = [], [], [], []
        self.end_status = 200  # of calls that end a job
        self.full = False
        self.changed = threading.Condition()
        handler = type("Handler", (Handler,), {"server_of_jobs": self})
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        self.over = False

    def __enter__(self):
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.over = True
        self.http.shutdown()
        self.http.server_close()

    def wait(self, condition, seconds=60):
        """Waits until `condition()` holds."""
        with self.changed:
            assert self.changed.wait_for(condition, seconds), (self.jobs, self.takes)

    # The routes. Each returns a status and a document.

    def submit(self, body):
        if self.full:
            return 429, {"error": {"kind": "usage", "message": "your quota is spent"}}
        for job in self.jobs:
            if job["key"] == body["key"]:
                return 202, self.view(job)
        job = {"id": len(self.jobs) + 1, "key": body["key"], "asked": body, "state": "queued"}
        job |= {"events": [], "attempts": 0, "lease": None, "verdict": None, "failure": None}
        self.jobs.append(job)
        return 202, self.view(job)

    def view(self, job):
        waiting = [each["id"] for each in self.jobs if each["state"] == "queued"]
        verdict = job["verdict"] or {}
        return {
            "job": {
                "id": job["id"],
                "state": job["state"],
                "place": waiting.index(job["id"]) + 1 if job["id"] in waiting else 0,
                "problem": job["asked"]["problem"],
                "size": job["asked"].get("size", ""),
                "name": job["asked"]["name"],
                "outcome": verdict.get("outcome"),
                "verdict": verdict.get("id"),
                "failure": job["failure"],
                "runner": job.get("runner"),
                "attempts": job["attempts"],
            }
        }

    def take(self, body):
        self.takes.append(body)
        deadline = time.monotonic() + min(body["wait_s"], 2)
        while time.monotonic() < deadline and not self.over:
            for job in self.jobs:
                if job["state"] == "queued":
                    return 200, self.lease(job, body["runner"])
            self.changed.wait(0.1)
        return 204, None

    def lease(self, job, runner):
        job["attempts"] += 1
        job |= {"state": "running", "runner": runner, "lease": f"{job['id']:x}{job['attempts']:x}"}
        asked = job["asked"]
        problem = {"name": asked["problem"], "file": None, "size": asked.get("size", "")}
        problem |= {"hash": sha256(self.problem_file(asked)), "set": asked.get("set", {})}
        return {
            "lease": job["lease"],
            "lease_s": 60,
            "job": {
                "id": job["id"],
                "kind": "judge",
                "problem": problem,
                "candidate": {"name": asked["name"], "source": asked["source"]},
                "opponent": None,
                "terms": self.terms,
                "seconds_max": 120,
            },
        }

    def problem_file(self, asked):
        return (ROOT / "problems" / "level1" / f"{asked['problem']}.py").read_text()

    def add(self, job, event):
        job["events"].append({"number": len(job["events"]) + 1, "time": "", "event": event})

    def progress(self, job, body):
        live = job["state"] == "running" and job["lease"] == body["lease"]
        if live and "event" in body:
            self.add(job, body["event"])
        return 200, {"go_on": live}

    def end(self, job, body):
        if self.end_status != 200:
            return self.end_status, {"error": {"kind": "environment", "message": "disk full"}}
        self.ends.append((job["id"], body))
        if job["state"] != "running" or job["lease"] != body["lease"]:
            return 200, {"counted": False}
        if body.get("error", {}).get("kind") == "interrupted":
            job |= {"state": "queued", "lease": None}
            return 200, {"counted": True}
        job |= {"verdict": body.get("verdict"), "failure": body.get("error", {}).get("message")}
        self.finish(job, "done" if "verdict" in body else "failed")
        return 200, {"counted": True}

    def finish(self, job, state):
        if job["state"] not in ENDED:
            job["state"] = state
            self.add(job, {"event": "ended", "state": state})
        return 200, self.view(job)

    def bundle(self, verdict_id):
        for job in self.jobs:
            if job["verdict"] and job["verdict"]["id"] == verdict_id:
                asked = job["asked"]
                problem = {"name": asked["problem"], "size": asked.get("size", "")}
                return 200, {
                    "schema": "assay.bundle/1",
                    "problem": problem | {"file": self.problem_file(asked)},
                    "candidate": {"name": asked["name"], "source": asked["source"]},
                    "opponent": None,
                    "terms": self.terms,
                    "verdict": job["verdict"],
                }
        return 404, {"error": {"kind": "usage", "message": "no such verdict"}}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_of_jobs = None

    def log_message(self, *_):
        pass

    def do_POST(self):
        self.serve("POST")

    def do_GET(self):
        self.serve("GET")

    def do_DELETE(self):
        self.serve("DELETE")

    def serve(self, method):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        jobs, path = self.server_of_jobs, self.path.split("?")[0]
        with jobs.changed:
            jobs.requests.append(f"{method} {self.path}")
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                status, reply = 401, {"error": {"kind": "usage", "message": "no such token"}}
            elif path.endswith("/events") and "event-stream" in self.headers.get("Accept", ""):
                return self.stream(jobs.jobs[int(path.split("/")[-2]) - 1])
            else:
                status, reply = self.route(method, path, json.loads(body) if body else None)
            jobs.changed.notify_all()
        text = b"" if reply is None else json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        if status == 429:
            self.send_header("Retry-After", "3600")
        try:
            self.end_headers()
            self.wfile.write(text)
        except BrokenPipeError:  # a client that was killed
            self.close_connection = True

    def route(self, method, path, body):
        jobs, words = self.server_of_jobs, path.strip("/").split("/")
        if (method, path) == ("POST", "/api/jobs"):
            return jobs.submit(body)
        if (method, path) == ("POST", "/api/runner/take"):
            return jobs.take(body)
        if words[:2] == ["api", "verdicts"]:
            status, bundle = jobs.bundle(words[2])
            whole = status != 200 or words[-1] == "bundle"
            return status, bundle if whole else bundle["verdict"]
        job = jobs.jobs[int(words[3 if words[1] == "runner" else 2]) - 1]
        if words[1] == "runner":
            return jobs.progress(job, body) if words[-1] == "progress" else jobs.end(job, body)
        return jobs.finish(job, "cancelled") if method == "DELETE" else (200, jobs.view(job))

    def stream(self, job):
        """Server-sent events: called with the lock held."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        next_one = int(self.headers.get("Last-Event-ID") or 0)
        while not self.server_of_jobs.over:
            events, next_one = job["events"][next_one:], len(job["events"])
            lines = [f"id: {e['number']}\ndata: {json.dumps(e['event'])}\n\n" for e in events]
            try:
                self.wfile.write("".join(lines).encode())
            except BrokenPipeError:
                return
            if job["state"] in ENDED:
                return
            self.server_of_jobs.changed.wait(0.1)
