"""assay.Session against a fake worker: answers, trouble, cancelling, the end."""

import asyncio
import contextlib
import gc
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import unittest
import warnings

import faked

import assay

CPP = "#include <assay/kernel.h>\n"
TWO = [assay.Source(CPP, "a.cpp"), assay.Source(CPP, "b.cpp")]


class SessionTest(faked.FakedTest):
    def setUp(self):
        super().setUp()
        self.session = assay.Session(program=faked.PROGRAM)
        self.addCleanup(self.session.close)

    def still_judges(self):
        [verdict] = self.session.judge("good", CPP)
        self.assertIs(verdict.outcome, assay.Outcome.FASTER)

    def test_verdicts_come_in_the_order_of_the_candidates_with_events(self):
        events = []
        verdicts = self.session.check("good", TWO, on_event=events.append, size="tiny")
        self.assertEqual([each.candidate for each in verdicts], ["a.cpp", "b.cpp"])
        self.assertEqual({each.outcome for each in verdicts}, {"correct"})
        self.assertEqual([type(each).__name__ for each in events], ["Progress", "Judged"] * 2)
        self.assertEqual(events[-1], assay.Judged(1, verdicts[1]))
        [request] = self.requests()
        self.assertEqual(request["terms"], {"size": "tiny", "problem": "good"})
        self.assertEqual(self.calls(), [["worker"]])

    def test_terms_and_limits_of_the_session_are_defaults(self):
        with assay.Session(
            program=faked.PROGRAM, cores=[0, 1], sharers=2, sessions_memory="1G", threads=1, p=2
        ) as session:
            session.describe("good", p=3)
        [request] = self.requests()
        self.assertEqual(request["terms"], {"threads": 1, "p": 3, "problem": "good"})
        [call] = self.calls()
        self.assertEqual(call[1:], ["--cores", "0,1", "--sharers", "2", "--memory", "1G"])
        with self.assertRaisesRegex(assay.UsageError, "did you mean size"):
            assay.Session(siz="tiny")

    def test_a_description(self):
        described = self.session.describe("good")
        self.assertEqual(described.signature, ("input x float32[2]",))

    def test_errors_of_the_request_and_of_the_machine(self):
        with self.assertRaisesRegex(assay.UsageError, "no problem"):
            self.session.judge("usage", CPP)
        with self.assertRaises(assay.MachineError) as raised:
            self.session.judge("no_device", CPP)
        self.assertEqual((raised.exception.code, raised.exception.exit_code), ("no_device", 8))
        with self.assertRaisesRegex(assay.MachineError, "no Python with PyTorch"):
            self.session.judge("lacks", CPP)
        self.assertEqual(len(self.requests()), 3)  # none was repeated
        self.still_judges()

    def test_an_error_in_the_middle_of_work_is_repeated_once(self):
        with self.assertWarnsRegex(assay.WorkerTrouble, "the disk is full"):
            self.session.judge("once", CPP)
        with self.assertWarns(assay.WorkerTrouble), self.assertRaises(assay.MachineError):
            self.session.judge("environment", CPP)
        self.assertEqual(len(self.requests()), 4)

    def test_what_cannot_be_judged_is_an_error_with_the_other_verdicts(self):
        events = []
        with self.assertRaisesRegex(assay.MachineError, "needs CUDA") as raised:
            self.session.judge("unjudged", TWO, on_event=events.append)
        self.assertIsNone(raised.exception.verdicts[0])
        self.assertEqual(raised.exception.verdicts[1].candidate, "b.cpp")
        self.assertIn(assay.Unjudged(0, "needs CUDA"), events)

    def test_a_killed_worker_is_started_again_and_asked_for_the_rest(self):
        events = []
        with self.assertWarnsRegex(assay.WorkerTrouble, "ended by signal 9"):
            verdicts = self.session.judge("dies_once", TWO, on_event=events.append)
        self.assertEqual([each.candidate for each in verdicts], ["a.cpp", "b.cpp"])
        asked = [[each["name"] for each in request["candidates"]] for request in self.requests()]
        self.assertEqual(asked, [["a.cpp", "b.cpp"], ["b.cpp"]])
        self.assertEqual(sum(isinstance(each, assay.Repeated) for each in events), 1)

    def test_a_worker_that_dies_twice_is_an_error_and_the_next_request_has_another(self):
        three = [*TWO, assay.Source(CPP, "c.cpp")]
        with self.assertWarns(assay.WorkerTrouble), self.assertRaises(assay.WorkerDied) as raised:
            self.session.judge("dies", three)
        found = [each and each.candidate for each in raised.exception.verdicts]
        self.assertEqual(found, ["a.cpp", "b.cpp", None])
        with self.assertWarnsRegex(assay.WorkerTrouble, "lost while idle"):
            self.still_judges()

    def test_a_worker_that_does_not_start_says_why(self):
        os.environ["FAKE_FAILS"] = "yes"
        with self.assertRaisesRegex(assay.MachineError, "bubblewrap is missing"):
            self.session.judge("good", CPP)
        self.assertEqual(len(self.calls()), 1)

    def test_a_worker_that_is_killed_before_it_is_ready_is_started_again(self):
        os.environ["FAKE_DIES_EARLY"] = "yes"
        self.addCleanup(os.environ.pop, "FAKE_DIES_EARLY")
        with self.assertWarnsRegex(assay.WorkerTrouble, "signal 9"):
            self.still_judges()

    def test_a_program_that_speaks_otherwise_is_ended(self):
        with self.assertRaisesRegex(assay.InternalError, "does not speak assay.worker/1"):
            self.session.judge("garbage", CPP)

    def test_a_time_out_cancels(self):
        with self.assertRaisesRegex(assay.TimedOut, "within 0.3 s"):
            self.session.judge("hangs", CPP, limit_s=0.3)
        pid = self.session.worker_pid
        self.still_judges()
        self.assertEqual(self.session.worker_pid, pid)

    def test_an_exception_of_a_callback_cancels(self):
        def fail(event):
            raise ZeroDivisionError

        with self.assertRaises(ZeroDivisionError):
            self.session.judge("hangs", CPP, on_event=fail)
        self.still_judges()

    def test_ctrl_c_cancels_and_a_second_one_kills_the_worker(self):
        def interrupt(event):
            os.kill(os.getpid(), signal.SIGINT)

        with self.assertRaises(KeyboardInterrupt):
            self.session.judge("hangs", CPP, on_event=interrupt)
        pid = self.session.worker_pid
        self.still_judges()
        self.assertEqual(self.session.worker_pid, pid)
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        with self.assertRaises(KeyboardInterrupt):
            self.session.judge("deaf", CPP, on_event=interrupt)
        self.assertTrue(faked.ends(pid))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", assay.WorkerTrouble)
            self.still_judges()

    def test_a_stream_that_is_closed_early_cancels(self):
        with contextlib.closing(self.session.stream("hangs", CPP)) as events:
            self.assertEqual(next(events).stage, "correctness")
        self.still_judges()
        kinds = [type(each) for each in self.session.stream("good", CPP, correctness_only=True)]
        self.assertEqual(kinds, [assay.Progress, assay.Judged])

    def test_threads_share_a_session(self):
        found = []

        def judge():
            found.extend(self.session.judge("good", TWO))

        threads = [threading.Thread(target=judge) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(found), 16)
        self.assertEqual(len(self.calls()), 1)

    def test_a_forked_child_is_refused_and_leaves_the_worker_alone(self):
        self.session.judge(CPP.replace("#", "import x #"), CPP)  # a source, kept in a file
        child = os.fork()
        if child == 0:
            code = 1
            try:
                self.session.judge("good", CPP)
            except assay.UsageError:
                self.session.close()
                code = 0
            os._exit(code)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        kept = pathlib.Path(self.requests()[0]["terms"]["problem"])
        self.assertTrue(kept.exists())
        self.still_judges()
        self.session.close()
        self.assertFalse(kept.parent.exists())

    def test_the_end(self):
        self.still_judges()
        pid = self.session.worker_pid
        self.session.close()
        self.assertFalse(faked.is_alive(pid))
        with self.assertRaisesRegex(assay.UsageError, "closed"):
            self.session.judge("good", CPP)
        with self.assertRaises(assay.UsageError):
            assay.Session(program=faked.PROGRAM).judge("good", [])

    def test_a_session_that_nobody_holds_ends_its_worker(self):
        session = assay.Session(program=faked.PROGRAM)
        session.judge("good", CPP)
        pid = session.worker_pid
        del session
        gc.collect()
        self.assertTrue(faked.ends(pid))

    def test_the_end_of_the_interpreter_ends_the_worker(self):
        script = (
            f"import assay; s = assay.Session(program={faked.PROGRAM!r})\n"
            f"s.judge('good', {CPP!r}); print(s.worker_pid)"
        )
        variables = {**os.environ, "PYTHONPATH": str(faked.HERE)}
        command = [sys.executable, "-B", "-c", script]
        printed = subprocess.run(command, env=variables, stdout=subprocess.PIPE, check=True).stdout
        self.assertTrue(faked.ends(int(printed)))


class AsyncTest(faked.FakedTest):
    def run_with(self, use):
        async def main():
            async with assay.Session(program=faked.PROGRAM) as session:
                return await use(session)

        return asyncio.run(main())

    def test_tasks_share_a_session(self):
        async def use(session):
            asked = (session.ajudge("good", TWO), session.acheck("good", CPP))
            both = await asyncio.gather(*asked, session.adescribe("good"))
            return both, [event async for event in session.astream("good", CPP)]

        (judged, checked, described), events = self.run_with(use)
        self.assertEqual([each.outcome for each in judged + checked], ["faster"] * 2 + ["correct"])
        self.assertEqual((described.problem, len(events)), ("good", 2))

    def test_cancelling_a_task_cancels_the_request(self):
        async def use(session):
            heard = asyncio.Event()
            task = asyncio.create_task(
                session.ajudge("hangs", CPP, on_event=lambda event: heard.set())
            )
            await heard.wait()
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            assert task.cancelled()
            return await session.acheck("good", CPP)

        self.assertEqual(len(self.run_with(use)), 1)

    def test_time_outs_errors_and_deaths(self):
        async def use(session):
            for problem, error in (("hangs", assay.TimedOut), ("usage", assay.UsageError)):
                begin = time.monotonic()
                with self.assertRaises(error):
                    await session.ajudge(problem, CPP, limit_s=0.3)
                self.assertLess(time.monotonic() - begin, 10)
            with self.assertWarns(assay.WorkerTrouble):
                return await session.ajudge("dies_once", TWO)

        self.assertEqual(len(self.run_with(use)), 2)

    def test_a_stream_that_is_closed_early(self):
        async def use(session):
            events = session.astream("hangs", CPP)
            async for _ in events:
                break
            await events.aclose()
            return await session.ajudge("good", CPP)

        self.assertEqual(len(self.run_with(use)), 1)


if __name__ == "__main__":
    unittest.main()
