"""bench/run_speed.py and bench/kernelbench_sample.py with a judge, a KernelBench and a PyTorch that
do nothing but say what they were given."""

import contextlib
import io
import json
import os
import pathlib
import signal
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "bench")]

import kernelbench_sample
import rows
import run_speed

FILE = "level_1_problem_{}_sample_{}_kernel.py"
PROBLEM = "height, width = 64, 64\nbatch = depth = 8\nprint(height, width, batch, depth)\n"
SIZES = "[level1]\n7_Area = { width = 3, batch = 2 }\n"

TORCH = """
import types
__version__ = "9.9"
version = types.SimpleNamespace(cuda="99")
cuda = types.SimpleNamespace(is_available=lambda: True, get_device_name=lambda device: "a card")
device = str
"""
UTILS = """
import os
import dotenv, openai, litellm
def set_gpu_arch(names):
    os.environ["TORCH_CUDA_ARCH_LIST"] = ";".join(names)
"""
TIMING = "def get_timing_function(method):\n    return lambda model: [0.25]\n"
# It runs the sources instead of judging them.
EVAL = """
import os, signal, time
from pydantic import BaseModel
from . import timing
class Result(BaseModel):
    compiled: bool = False
    correctness: bool = False
    metadata: dict = {}
    runtime: float = -1.0
    runtime_stats: dict = {}
    ref_runtime: float = -1.0
def get_torch_dtype_from_string(name):
    return name
def load_custom_model(source, context, build_dir):
    exec(source, context)
def load_custom_model_with_tempfile(source, entry_point="ModelNew"):
    exec(source, {})
def run_and_check_correctness(trials):
    for word in "begins", "ends":
        with open(__file__ + ".measured", "a") as file:
            file.write(word + chr(10))
        time.sleep(0.05)
    return Result(compiled=True, correctness=True)
def eval_kernel_against_ref(original_model_src, custom_model_src, **options):
    context = {"signal": signal, "os": os, "time": time, "print": lambda *_: None}
    exec(original_model_src, context)
    load_custom_model(custom_model_src, context, options["build_dir"])
    result = run_and_check_correctness(options["num_correct_trials"])
    result.runtime, = timing.get_timing_function(options["timing_method"])(None)
    result.ref_runtime, = timing.get_timing_function(options["timing_method"])(None)
    result.metadata["problem"] = original_model_src
    result.metadata["options"] = {name: options[name] for name in sorted(options)}
    result.metadata["caches"] = [os.path.exists(os.environ[name]) for name in CACHES]
    result.metadata["arch"] = os.environ["TORCH_CUDA_ARCH_LIST"]
    return result
CACHES = ["TORCH_EXTENSIONS_DIR", "TRITON_CACHE_DIR", "XDG_CACHE_HOME"]
"""
JUDGE = """#!{python}
import json, os, pathlib, sys
words = sys.argv[1:]
assert words[0] == "run" and not os.path.exists(os.environ["XDG_CACHE_HOME"]), words
results = pathlib.Path(words[words.index("--results") + 1])
results.mkdir(parents=True, exist_ok=True)
there = (results / "verdicts.jsonl").exists()
cost = dict.fromkeys(("start_s", "fill_s", "timed_s", "overhead_s", "total_s"), 1.5)
rest = {{"cost": cost | {{"build_s": None}}, "machine": {{"gpu": "a card"}}, "toolchain": {{}}}}
def row(path, value):
    with open(results / "verdicts.jsonl", "a") as file:
        file.write(json.dumps({{"candidate": str(path)}} | value) + chr(10))
for number, path in enumerate(sorted(pathlib.Path(words[1]).iterdir())):
    if there and number == 0:
        continue
    if "--interrupted" in words and number == 1:
        sys.exit(130)
    if number == 1:
        row(path, {{"error": {{"kind": "environment", "message": "tried again"}}}})
    row(path, {{"verdict": {{"outcome": ("faster", "wrong")[number % 2]}} | rest}})
"""


class Case(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        for name, text in {
            "KernelBench/level1/7_Area.py": PROBLEM,
            "KernelBench/level1/70_Other.py": "N = 4\n",
            "src/torch.py": TORCH,
            "src/kernelbench/__init__.py": "",
            "src/kernelbench/eval.py": EVAL,
            "src/kernelbench/timing.py": TIMING,
            "src/kernelbench/utils.py": UTILS,
            "sizes.toml": SIZES,
            "judge": JUDGE.format(python=sys.executable),
        }.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (self.folder / "judge").chmod(0o755)
        self.answers = self.folder / "answers"
        self.answers.mkdir()
        self.out = self.folder / "rows.jsonl"

    def answer(self, number, sample, form, text="pass\n"):
        name = FILE.format(number, sample)
        (self.answers / name).write_text(text)
        row = {"file": name, "form": form}
        with (self.answers / "provenance.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
        return name

    def run_part(self, part, *words, after=()):
        common = ["--problems", self.folder, "--sizes", self.folder / "sizes.toml"]
        command = [part, *words, *common, "--out", self.out, *after]
        with (
            contextlib.redirect_stdout(io.StringIO()) as said,
            mock.patch.dict(os.environ, {"ASSAY_JUDGE_COMMIT": "abc"}),
            mock.patch.object(run_speed, "ASSAY", str(self.folder / "judge")),
            mock.patch.object(run_speed, "cards", lambda: ["a card"]),
        ):
            run_speed.main([str(word) for word in command])
        return said.getvalue()


class Sizes(Case):
    def test_constants_of_the_problem_are_set_in_its_text(self):
        path = self.folder / "KernelBench" / "level1" / "7_Area.py"
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(run_speed.sized(path, {"width": 3, "batch": 2}, every=True), {})
        self.assertEqual(said.getvalue(), "64 3 2 8\n")

    def test_a_constant_that_the_problem_lacks_is_an_error(self):
        path = self.folder / "KernelBench" / "level1" / "7_Area.py"
        with self.assertRaisesRegex(ValueError, "has no such constant.*did you mean width"):
            run_speed.sized(path, {"widht": 3}, every=True)

    def test_a_candidate_changes_only_in_constants_that_it_has(self):
        path = self.folder / "candidate.py"
        for text, changed in (
            ("width = 9  # here\n", "width = 3"),
            ("other = 9  # here\n", "other = 9  # here\n"),
            ("def broken(:\n", "def broken(:\n"),
        ):
            path.write_text(text)
            self.assertEqual(run_speed.sized(path, {"width": 3}), changed)


class KernelBench(Case):
    def part(self, *words):
        return self.run_part("kernelbench", "--answers", self.answers, *words)

    def test_a_row_has_the_verdict_and_where_the_time_went(self):
        name = self.answer(7, 0, "cuda", "time.sleep(0.02)\n")
        broken = self.answer(70, 1, "triton", "raise OSError('no compiler')\n")
        self.part(name, broken)
        first, second = rows.read(self.out)
        said = {key: first[key] for key in ("judge", "what", "candidate", "form", "set", "sizes")}
        self.assertEqual(
            said,
            {
                "judge": "abc",
                "what": "kernelbench",
                "candidate": name,
                "form": "cuda",
                "set": {"width": 3, "batch": 2},
                "sizes": "sizes.toml",
            },
        )
        self.assertEqual(
            (first["compiled"], first["correct"], first["runtime_ms"], first["card"]),
            (True, True, 0.25, "a card"),
        )
        self.assertIn("width = 3", first["metadata"]["problem"])
        self.assertEqual(first["metadata"]["caches"], "[False, False, False]")
        self.assertEqual(first["metadata"]["arch"], "Hopper")
        for option in ("'num_correct_trials': 5", "'num_perf_trials': 100", "'backend': 'cuda'"):
            self.assertIn(option, first["metadata"]["options"])
        parts = first["parts"]
        self.assertGreaterEqual(parts["build_s"], 0.02)
        self.assertGreaterEqual(first["wall_s"], round(parts["process_s"], 2))
        self.assertEqual(
            set(parts),
            {"import_s", "build_s", "waited_s", "correctness_s", "timing_s", "process_s"},
        )
        self.assertEqual(second["set"], {})
        self.assertFalse(second["compiled"])
        self.assertIn("no compiler", second["error"])

    def test_candidates_build_side_by_side_and_are_measured_in_turn(self):
        waits = "while len(os.listdir({0!r})) < 2: time.sleep(0.01)\n"
        meet = self.folder / "meet"
        meet.mkdir()
        for number in 7, 70:
            there = f"open({str(meet / str(number))!r}, 'w').close()\n"
            self.answer(number, 0, "cuda", there + waits.format(str(meet)))
        names = sorted(path.name for path in self.answers.glob("*.py"))
        self.part(*names, "--builds", 2, "--timeout", 30)
        found = rows.read(self.out)
        self.assertEqual({row["candidate"] for row in found if row["correct"]}, set(names))
        measured = (self.folder / "src/kernelbench/eval.py.measured").read_text().split()
        self.assertEqual(measured, ["begins", "ends"] * 2)
        self.assertGreater(max(row["parts"]["waited_s"] for row in found), 0.05)

    def test_a_candidate_that_hangs_is_timed_out(self):
        self.part(self.answer(7, 0, "cuda", "time.sleep(60)\n"), "--timeout", "0.5")
        (row,) = rows.read(self.out)
        self.assertEqual((row["compiled"], row["error"]), (False, "Evaluation timed out"))
        self.assertLess(row["wall_s"], 30)

    def test_a_candidate_that_dies_has_a_row(self):
        self.part(self.answer(7, 0, "cuda", "os.kill(os.getpid(), signal.SIGSEGV)\n"))
        (row,) = rows.read(self.out)
        self.assertIn("signal 11 ended the process", row["error"])

    def test_what_the_minutes_leave_out_is_said(self):
        slow, last = self.answer(7, 0, "cuda", "time.sleep(60)\n"), self.answer(70, 0, "cuda")
        said = self.part(slow, last, "--minutes", "0.01")
        self.assertIn(f"left out by --minutes 0.01: {slow}, {last}", said)
        (row,) = rows.read(self.out)
        self.assertEqual((row["what"], row["candidates"]), ("left_out", [slow, last]))

    def test_a_kernelbench_that_does_not_run_is_an_error(self):
        name = self.answer(7, 0, "cuda")
        torch = self.folder / "src" / "torch.py"
        torch.write_text(TORCH.replace("lambda: True", "lambda: False"))
        with self.assertRaisesRegex(SystemExit, "does not run here: PyTorch sees no GPU"):
            self.part(name)
        (self.folder / "src" / "kernelbench" / "utils.py").write_text("import no_such_module\n")
        with self.assertRaisesRegex(SystemExit, r"does not run here(.|\n)*no_such_module"):
            self.part(name)
        (self.folder / "src" / "kernelbench" / "eval.py").unlink()
        with self.assertRaisesRegex(SystemExit, "name a checkout of KernelBench"):
            self.part(name)
        self.assertFalse(self.out.exists())

    def test_default_candidates_are_there_one_a_problem(self):
        forms = run_speed.forms_of(run_speed.ANSWERS)
        self.assertEqual({forms[name] for name in run_speed.CANDIDATES}, {"cuda"})
        problems = {run_speed.NAME.fullmatch(name).groups()[:2] for name in run_speed.CANDIDATES}
        self.assertEqual(len(problems), 5)

    def test_the_record_that_stands_in_for_pydantic_shares_no_default(self):
        class Result(kernelbench_sample.Record):
            metadata: dict = {}
            runtime: float = -1.0

        first, second = Result(runtime=2.0), Result()
        first.metadata["a"] = 1
        self.assertEqual((second.metadata, first.runtime, second.runtime), ({}, 2.0, -1.0))


class Assay(Case):
    def part(self, *words, after=()):
        results = ("--results", self.folder / "results")
        return self.run_part("assay", self.answers, *results, *words, after=after)

    def test_a_row_sums_a_cold_run_of_the_selection(self):
        self.answer(7, 0, "cuda"), self.answer(7, 1, "triton"), self.answer(70, 0, "torch")
        self.part("--forms", "triton,torch", after=["--", "--budget", 6])
        row, *verdicts = rows.read(self.out)
        self.assertEqual(
            [(one["what"], one["outcome"]) for one in verdicts],
            [("verdict", "faster"), ("verdict", "wrong")],
        )
        expected = {
            "judge": "abc",
            "what": "assay",
            "forms": ["triton", "torch"],
            "options": ["--budget", "6"],
            "candidates": 2,
            "problems": 2,
            "judged": 2,
            "outcomes": {"faster": 1, "wrong": 1},
            "cards": ["a card"],
            "gpu": "a card",
            "exit": 0,
        }
        self.assertEqual({key: row[key] for key in expected}, expected)
        self.assertEqual((row["costs"]["build_s"], row["costs"]["total_s"]), (0.0, 3.0))
        self.assertEqual(row["command"][-2:], ["--budget", "6"])
        self.assertAlmostEqual(row["s_a_candidate"], row["wall_s"] / 2, delta=0.01)
        with self.assertRaisesRegex(SystemExit, "give a fresh folder, or --goes-on"):
            self.part()

    def test_a_run_that_is_cut_off_says_what_it_left_out(self):
        self.answer(70, 0, "cuda")  # sorts before the other
        last = self.answer(7, 0, "cuda")
        said = self.part(after=["--", "--interrupted"])
        row, _, out = rows.read(self.out)
        self.assertEqual((row["exit"], row["judged"], row["candidates"]), (130, 1, 2))
        self.assertEqual((out["what"], out["candidates"]), ("left_out", [last]))
        self.assertIn(last, said)
        self.part("--goes-on")
        row, verdict = rows.read(self.out)[3:]
        self.assertEqual((row["judged"], verdict["candidate"]), (1, last))

    def test_a_run_is_interrupted_when_its_time_ends(self):
        self.assertEqual(run_speed.run_bounded(["sleep", "60"], None, 0.1), -signal.SIGINT)
        self.assertEqual(run_speed.run_bounded(["true"], None, 60), 0)

    def test_a_selection_of_no_candidates_is_an_error(self):
        self.answer(7, 0, "cuda")
        with self.assertRaisesRegex(SystemExit, "no candidates of these forms"):
            self.part("--forms", "triton")
        (self.answers / "provenance.jsonl").unlink()
        with self.assertRaisesRegex(SystemExit, "--forms needs .*provenance.jsonl"):
            self.part("--forms", "cuda")


class Copies(Case):
    def test_each_reference_becomes_a_candidate(self):
        path = self.folder / "KernelBench/level1/7_Area.py"
        path.write_text("class Model:\n    def f(self):\n        super(Model, self); Models\n")
        words = ["copies", "--problems", self.folder, self.folder / "made"]
        with contextlib.redirect_stdout(io.StringIO()):
            run_speed.main([str(word) for word in words])
        made = sorted(path.name for path in (self.folder / "made").iterdir())
        self.assertEqual(made, [FILE.format(70, 0), FILE.format(7, 0)])
        text = (self.folder / "made" / made[1]).read_text()
        self.assertIn("class ModelNew:", text)
        self.assertIn("super(ModelNew, self); Models", text)


def row_of_run(**changes):
    row = {"what": "assay", "sizes": "s", "cards": ["a card"], "cores": 16, "forms": ["cuda"]}
    row |= {"options": [], "candidates": 68, "problems": 68, "judged": 68, "s_a_candidate": 4.0}
    return row | changes


def row_of_kernelbench(wall_s, **changes):
    row = {"what": "kernelbench", "sizes": "s", "cards": ["a card"], "form": "cuda"}
    row |= {"wall_s": wall_s, "compiled": True, "correct": True}
    return row | {"parts": {"build_s": wall_s - 10}} | changes


class Table(unittest.TestCase):
    def last(self, *all_rows):
        return run_speed.table(all_rows).splitlines()[2]

    def test_the_ratio_is_of_means_of_equal_forms_sizes_and_cards(self):
        line = self.last(
            row_of_run(),
            row_of_kernelbench(60.0),
            row_of_kernelbench(80.0, correct=False),
            row_of_kernelbench(900.0, form="triton"),
            row_of_kernelbench(900.0, sizes=None),
            row_of_kernelbench(900.0, cards=["another"]),
            {k: v for k, v in row_of_kernelbench(900.0).items() if k != "parts"},
        )
        self.assertEqual(
            line,
            "| `assay run`, 68 candidates (cuda) for 68 problems, on a machine with 1 x a card and "
            "16 cores | 4.00 s | 70.0 s, mean of 2 (2 compiled, 1 correct); 60.0 s of it "
            "building | 17.5 |",
        )

    def test_what_was_not_measured_has_a_dash(self):
        line = self.last(row_of_run(cards=[], judged=0, s_a_candidate=None, options=["--full"]))
        self.assertIn("0 of 68 candidates (cuda)", line)
        self.assertIn("no GPU and 16 cores, `--full`", line)
        self.assertTrue(line.endswith("| - | - | - |"), line)

    def test_what_was_left_out_is_counted_below(self):
        left = {"what": "left_out", "part": "kernelbench", "candidates": ["a.py", "b.py"]}
        text = run_speed.table([row_of_run(), left])
        self.assertTrue(text.endswith("\nLeft out of kernelbench: 2 candidates"), text)

    def test_agreement_is_of_equal_candidates_and_sizes(self):
        name = FILE.format(7, 0)
        theirs = row_of_kernelbench(60.0, candidate=name, reference_runtime_ms=3.0, runtime_ms=2.0)
        ours = {"what": "verdict", "candidate": name, "sizes": "s", "outcome": "wrong"}
        ours |= {"message": "wrong: /a/b/c.py", "cost": {"total_s": 7.6}}
        text = run_speed.agreement([theirs, ours, ours | {"sizes": None, "outcome": "faster"}])
        self.assertEqual(
            text.splitlines()[2:],
            ["| level_1_problem_7_sample_0 | correct, 1.5x | 60 | wrong | 8 | wrong: /a/b/c.py |"],
        )


if __name__ == "__main__":
    unittest.main()
