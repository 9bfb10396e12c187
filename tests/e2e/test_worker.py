"""assay worker: requests and events as JSON lines, sessions that stay warm, trouble that passes."""
import json
import os
import signal
import subprocess
import sys
import time

import jsonschema
import pytest

from conftest import ASSAY, ROOT, SOFTMAX_BODY

KERNELS = ROOT / "kernels" / "softmax"
TERMS = {"problem": "softmax", "size": "tiny", "threads": 1}
CRASHES = "*(volatile int*)16 = 1;"


def source(body=SOFTMAX_BODY):
    head = "#include <assay/kernel.h>\n#include <cmath>\n"
    arguments = "assay::Tensor<const float, 2> x, assay::Tensor<float, 2> y"
    return f"{head}ASSAY_KERNEL({arguments}) {{{body}}}\n"


def candidate(name, body=SOFTMAX_BODY):
    return {"name": name, "source": source(body)}


class Worker:
    def __init__(self, home, *options, **variables):
        environment = {**os.environ, "XDG_STATE_HOME": str(home), "XDG_CACHE_HOME": str(home)}
        environment |= variables
        self.process = subprocess.Popen(
            [str(ASSAY), "worker", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=home,
            env=environment,
        )
        self.schema = jsonschema.Draft202012Validator(
            json.loads((ROOT / "docs" / "worker.schema.json").read_text())
        )
        assert self.read()["event"] == "ready"

    def send(self, sound=True, **request):
        if sound:
            self.schema.validate(request)
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()

    def read(self):
        event = json.loads(self.process.stdout.readline())
        self.schema.validate(event)
        return event

    def events_of(self, number):
        """All but progress, to the request's end."""
        events = []
        while not events or events[-1]["event"] not in ("done", "error"):
            event = self.read()
            if event["id"] == number and event["event"] != "progress":
                events.append(event)
        return events

    def outcomes_of(self, number):
        events = self.events_of(number)
        assert events[-1]["event"] == "done", events
        return [event["verdict"]["outcome"] for event in events[:-1]]

    def close(self):
        self.process.stdin.close()
        return self.process.wait(timeout=60)


@pytest.fixture(name="worker")
def fixture_worker(tmp_path):
    worker = Worker(tmp_path)
    yield worker
    worker.process.terminate()
    worker.process.wait(timeout=60)


def test_a_large_problem_waits_for_a_candidate_that_builds(worker):
    """Its session is closed again: the next request finds one that is whole."""
    large = TERMS | {"set": {"ROWS": "40000", "COLUMNS": "1024"}}
    broken = {"name": "broken.py", "source": "import torch\nclass ModelNew: no_such_name"}
    for number in ("first", "second"):
        worker.send(id=number, request="check", terms=large, candidates=[broken])
        assert worker.outcomes_of(number) == ["build_failed"]
    worker.send(id="good", request="check", terms=TERMS, candidates=[candidate("good.cpp")])
    assert worker.outcomes_of("good") == ["correct"]


def test_candidates_good_and_bad_one_after_another(worker):
    worker.send(id="what", request="describe", terms=TERMS)
    assert "input x float32[64, 1024]" in worker.events_of("what")[0]["signature"]
    bad = [candidate("typo.cpp", "nonsense;"), candidate("crash.cpp", CRASHES)]
    worker.send(id="bad", request="check", terms=TERMS, candidates=bad)
    assert worker.outcomes_of("bad") == ["build_failed", "crashed"]
    worker.send(id="good", request="check", terms=TERMS, candidates=[candidate("good.cpp")])
    assert worker.outcomes_of("good") == ["correct"]
    wrong = [{"path": str(KERNELS / "off_by_one.cpp")}]
    worker.send(id="wrong", request="judge", terms=TERMS, candidates=wrong)
    assert worker.outcomes_of("wrong") == ["wrong"]
    worker.send(id="slow", request="judge", terms=TERMS, candidates=[candidate("good.cpp")])
    assert worker.outcomes_of("slow")[0] in ("faster", "slower", "tie", "unsettled")
    worker.send(request="shutdown")
    assert worker.process.wait(timeout=60) == 0


def test_requests_that_make_no_sense_are_refused_and_the_rest_goes_on(worker):
    for request, said in (
        ({"id": "1", "request": "guess"}, "use judge, check, describe"),
        ({"id": "2", "request": "describe", "terms": {"problem": "sofmax"}}, "did you mean"),
        ({"id": "3", "request": "check", "terms": TERMS, "candidates": []}, "candidates is"),
        ({"id": "4", "request": "describe", "terms": {**TERMS, "tread": 1}}, "terms.tread"),
    ):
        worker.send(sound=False, **request)
        [event] = worker.events_of(request["id"])
        assert event["kind"] == "usage" and said in event["message"], event
    worker.send(id="5", request="check", terms=TERMS, candidates=[candidate("good.cpp")])
    assert worker.outcomes_of("5") == ["correct"]


def test_what_builds_to_the_same_is_judged_once_and_other_speeds_share_a_session(worker):
    same = [candidate("a.cpp"), {"name": "b.cpp", "source": source() + "// another text\n"}]
    worker.send(id="1", request="check", terms=TERMS, candidates=same, known=[])
    first, second, done = worker.events_of("1")
    artifact = first["verdict"]["candidate"]["artifact"]
    assert first["verdict"]["outcome"] == "correct" and done["event"] == "done"
    assert (second["event"], second["candidate"], second["artifact"]) == ("known", 1, artifact)
    # The same session: nothing starts for another p and bound.
    terms = {**TERMS, "p": 1.5, "bound": 2.5}
    worker.send(id="2", request="check", terms=terms, candidates=same[:1], known=[artifact])
    events = [worker.read()]
    while events[-1]["event"] != "done":
        events.append(worker.read())
    assert not [event for event in events if event.get("stage") == "starting"], events
    assert events[-2]["event"] == "known", events


def test_no_draw_of_a_session_comes_twice(worker):
    seeds = set()
    for number in ("1", "2", "3"):
        worker.send(id=number, request="check", terms=TERMS, candidates=[candidate("good.cpp")])
        verdict = worker.events_of(number)[0]["verdict"]
        own = {draw["seed"] for draw in verdict["correctness"]["draws"]}
        assert verdict["outcome"] == "correct" and not own & seeds, verdict
        seeds |= own


def test_a_cancelled_request_ends_and_the_next_one_is_judged(worker):
    endless = candidate("endless.cpp", "for (volatile int i = 0;; i = i + 1) {}")
    terms = {**TERMS, "timeout_s": 600}
    worker.send(id="endless", request="check", terms=terms, candidates=[endless])
    worker.send(id="waiting", request="check", terms=terms, candidates=[endless])
    worker.send(request="cancel", of="waiting")
    while worker.read().get("stage") != "correctness":
        pass
    worker.send(request="cancel", of="endless")
    assert worker.events_of("endless")[-1]["kind"] == "interrupted"
    worker.send(id="good", request="check", terms=terms, candidates=[candidate("good.cpp")])
    assert worker.outcomes_of("good") == ["correct"]


def test_who_has_no_client_any_more_ends(worker):
    """A worker lived until a hanging candidate's limit when its client had been killed."""
    endless = candidate("endless.cpp", "for (volatile int i = 0;; i = i + 1) {}")
    terms = {**TERMS, "timeout_s": 600}
    worker.send(id="endless", request="check", terms=terms, candidates=[endless])
    while worker.read().get("stage") != "correctness":
        pass
    worker.process.stdin.close()
    worker.process.stdout.close()
    assert worker.process.wait(timeout=60) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_it_leaves_no_process_behind(worker, number, leftovers):
    worker.send(id="1", request="judge", terms=TERMS, candidates=[candidate("good.cpp")])
    while worker.read().get("stage") != "speed":
        pass
    worker.process.send_signal(number)
    assert worker.process.wait(timeout=60) == (0 if number == signal.SIGTERM else -number)
    # The control groups of a killed judge are removed by the next one.
    assert not leftovers(but_below="/sys/" if number == signal.SIGKILL else None)


@pytest.mark.thorough
def test_the_example_judges_twenty_candidates(tmp_path):
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    environment["PYTHONPATH"] = str(ROOT / "python")
    process = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "worker.py"), str(ASSAY)],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment,
    )
    assert process.returncode == 0, process.stderr
    lines = process.stdout.splitlines()
    assert len(lines) == 20 and all("off_by_one" not in line or "wrong" in line for line in lines)


@pytest.mark.skipif(os.path.exists("/dev/nvidiactl"), reason="a GPU is there")
def test_a_profile_needs_a_gpu_and_nsight_compute(tmp_path):
    kernel = "//! launch k<<<1, 32>>>\n__global__ void k(const float* x, float* y) {}\n"
    ncu = tmp_path / "ncu"
    ncu.write_text("#!/bin/sh\nexit 1\n")
    ncu.chmod(0o755)

    def told(name, text, program):
        worker = Worker(tmp_path, ASSAY_NCU=str(program))
        candidates = [{"name": name, "source": text}]
        terms = {**TERMS, "profile": True}
        worker.send(id="1", request="judge", terms=terms, candidates=candidates)
        message = worker.events_of("1")[-1]["message"]
        assert worker.close() == 0
        return message

    assert "--profile needs a candidate that runs on a GPU" in told("a.cpp", source(), ncu)
    assert "ASSAY_NCU names" in told("a.cu", kernel, tmp_path / "nowhere")
    assert "no CUDA driver" in told("a.cu", kernel, ncu)


def test_nothing_of_a_killed_worker_holds_its_stderr(tmp_path):
    """A search ends its workers by a kill, also while hosts start. Nurseries then waited for a host
    that never came, and who read the search's stderr waited for its end with them.
    """
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    for pause_s in (0, 0.05):
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        worker = subprocess.Popen([str(ASSAY), "worker"], **pipes, text=True, env=environment)
        request = {"id": "1", "request": "describe", "terms": {**TERMS, "device": "cpu"}}
        worker.stdin.write(json.dumps(request) + "\n")
        worker.stdin.flush()
        while json.loads(worker.stdout.readline())["event"] != "description":
            pass
        time.sleep(pause_s)
        worker.kill()
        worker.communicate(timeout=30)
