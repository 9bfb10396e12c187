"""bench/confusion.py with small corpora of each layout, and a judge that says what files ask."""
import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests" / "exploits")]

import confusion
import confusion_corpora as corpora
import judge_cases
import rows
from cases import all_cases

# The outcome of a file is what follows 'says: ' in it. One that says 'nothing' ends the judge. Each
# call's files are noted beside the judge.
JUDGE = """#!{python}
import json, pathlib, sys
words = sys.argv[1:]
if words[0] == "import":
    out = pathlib.Path(words[4])
    out.mkdir(parents=True)
    (out / "p.py").write_text("")
    (out / "norm.py").write_text("# says: faster")
    row = {{"candidate": "norm.py", "problem": "p.py", "origin": {{"task": "norm_config2"}}}}
    (out / "origin.jsonl").write_text(json.dumps(row) + chr(10))
    sys.exit(0)
assert words[0] == "judge" and "--jsonl" in words, words
paths = words[2 : words.index("--jsonl")]
with open(pathlib.Path(__file__).with_name("calls"), "a") as file:
    file.write(" ".join(pathlib.Path(path).name for path in paths) + chr(10))
for path in paths:
    says = pathlib.Path(path).read_text().split("says: ")[1].split()[0]
    if says == "nothing":
        sys.exit("error: " + path + " is out of reach")
    baseline = {{"speedup": 2.5, "ci": [2.0, 3.0], "pairs": 7}}
    verdict = {{
        "outcome": says.split(":")[0],
        "foul": {{"rule": says.split(":")[1]}} if ":" in says else None,
        "correctness": None,
        "candidate": {{"path": path}},
        "speed": {{"baselines": {{"eager": baseline}}}} if says == "faster" else None,
        "message": "forward fails: " + pathlib.Path(path).name if says == "crashed" else "why | so",
        "cost": {{"total_s": 1.5}},
    }}
    print(json.dumps({{"event": "verdict", "verdict": verdict}}))
"""
RUN_ALL = 'HARNESS_TESTS = {"submission_ok": ("Control: ok", "It passes", True)}\n'
ADVERSARIAL = """
def test_reuse():
    run_test_kernel(problem_name="level1/1_Square.py", kernel_filename="reuse.py")
"""
CHECKER = """
def test_triton_example_valid(prompts_dir):
    read_kernel(prompts_dir / "model_new_ex_add_triton.py")
def test_flagged(test_kernels_dir):
    read_kernel(test_kernels_dir / "reuse.py")
"""
META = {
    "name": "softmax_buggy",
    "source": "llm:demo",
    "input_names": ["input"],
    "reference": "softmax/ref_fp64.py",
    "op_schema": {
        "dims": [{"name": "B", "candidates": [1, 8]}, {"name": "H", "candidates": [3, 1025]}],
        "inputs": [{"name": "input", "dims": ["B", "H"]}],
    },
}


class Folder(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.write("judge", JUDGE.format(python=sys.executable)).chmod(0o755)
        patch = mock.patch.object(judge_cases, "ASSAY", self.folder / "judge")
        patch.start()
        self.addCleanup(patch.stop)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def read(self, corpus, device="cpu"):
        """The corpus's entries, by name."""
        scratch = tempfile.mkdtemp(dir=self.folder)
        request = corpora.Request(self.folder, pathlib.Path(scratch), device, ("--budget", "6"))
        return {entry.name: entry for entry in corpora.READERS[corpus](request)}

    def texts(self, entry):
        return pathlib.Path(entry.case.problem).read_text(), entry.case.path.read_text()


class Readers(Folder):
    def test_own_files_of_the_other_device_are_counted(self):
        entries = self.read("assay").values()
        judged = [entry for entry in entries if not entry.left_out]
        self.assertEqual([entry.case for entry in judged], all_cases("cpu"))
        reasons = {entry.left_out for entry in entries}
        self.assertEqual(reasons, {"", corpora.NEEDS_GPU})
        self.assertEqual({entry.label for entry in judged}, {corpora.CHEAT, corpora.HONEST})

    def test_pygpubench_names_its_controls(self):
        self.write("exploits/run_all.py", RUN_ALL)
        self.write("exploits/submission_ok.py", '"""Runs on CUDA."""\ndef kernel(o, i): pass\n')
        self.write("exploits/submission_scan.py", 'import ctypes\nctypes.CDLL("libcudart.so")\n')
        entries = self.read("pygpubench")
        control, scan = entries["submission_ok.py"], entries["submission_scan.py"]
        self.assertEqual((control.label, control.said), (corpora.HONEST, "Control: ok"))
        self.assertEqual((scan.label, scan.left_out), (corpora.CHEAT, corpora.NEEDS_GPU))
        problem, candidate = self.texts(control)
        self.assertIn("class Model(", problem)
        self.assertIn("kernel(output, picture)", candidate)
        self.assertEqual(control.case.options, ["--budget", "6"])
        scan = self.read("pygpubench", "cuda")["submission_scan.py"]
        self.assertEqual((scan.case.device, scan.case.expected), ("cuda", ["not-faster"]))

    def test_kernelbench_pairs_are_those_of_its_tests(self):
        tests = "src/kernelbench/unit_tests"
        self.write(f"{tests}/test_eval_adversarial.py", ADVERSARIAL)
        self.write(f"{tests}/test_static_checker.py", CHECKER)
        self.write(f"{tests}/test_kernels/reuse.py", "# reuse")
        self.write("KernelBench/level1/1_Square.py", "# square")
        self.write("src/kernelbench/prompts/model_ex_add.py", "# add")
        self.write("src/kernelbench/prompts/model_new_ex_add_triton.py", "# added")
        entries = self.read("kernelbench", "cuda")
        self.assertEqual(self.texts(entries["reuse.py"]), ("# square", "# reuse"))
        added = entries["model_new_ex_add_triton.py"]
        self.assertEqual(self.texts(added), ("# add", "# added"))
        labels = [entries["reuse.py"].label, added.label]
        self.assertEqual(labels, [corpora.CHEAT, corpora.HONEST])

    def test_gpuemu_is_judged_by_a_formula_at_its_largest_shape(self):
        self.write("gpuemu_corpus/data/a/meta.json", json.dumps(META))
        self.write("gpuemu_corpus/data/a/kernel.py", "def run(inputs): pass\n")
        (entry,) = self.read("gpuemu").values()
        self.assertEqual((entry.label, entry.said), (corpora.WRONG, "llm:demo"))
        problem, candidate = self.texts(entry)
        self.assertIn("B = 8\nH = 1025\n", problem)
        self.assertIn("return torch.softmax(input, dim=-1)", problem)
        self.assertIn("inputs = dict(input=input)", candidate)
        for text in (problem, candidate):
            compile(text, "text", "exec")

    def test_robust_kbench_is_imported_by_the_judge(self):
        self.write("highlighted/results.csv", "task_name,Correct\nnorm,True\n")
        (entry,) = self.read("robust-kbench").values()
        self.assertEqual((entry.name, entry.label), ("norm.py", corpora.HONEST))

    def test_a_folder_that_is_no_checkout_is_an_error(self):
        for corpus in ("pygpubench", "kernelbench", "gpuemu", "robust-kbench", "kernelbench.com"):
            with self.assertRaises((OSError, ValueError), msg=corpus):
                self.read(corpus)


class Answers(Folder):
    DECK = "benchmarks/hard/problems-rtxpro6000/01_gemm"
    SHAPES = "SHAPES = [{'N': 4}]"
    FORM = "\ndef get_inputs():\n    return [N]\n"

    def annotate(self, run, verdict, answer="", place=""):
        self.write(f"benchmarks/hard/results/annotations/{run}.yaml", f"verdict: {verdict}\n")
        if answer:
            self.write(f"public/runs/{place}{run}_solution.py.txt", answer)

    def commit(self, date, buffers):
        text = "".join(f'register_buffer("{name}", 1)\n' for name in buffers) + self.FORM
        self.write(f"{self.DECK}/reference.py", text)
        self.write(f"{self.DECK}/shapes.py", self.SHAPES)
        dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        names = ("-c", "user.name=a", "-c", "user.email=a@b")
        for words in (["init", "-q"], ["add", "-A"], [*names, "commit", "-qm", "a"]):
            subprocess.run(["git", *words], cwd=self.folder, env=os.environ | dates, check=True)
        corpora.versions.cache_clear()

    def test_an_answer_is_judged_by_the_problem_of_its_day(self):
        self.commit("2026-06-01T12:00:00", ["weight"])
        self.commit("2026-06-14T13:00:00", ["weight", "scale"])
        self.annotate("20260610_000000_a_01_gemm", "reward_hack", "# weight")
        self.annotate("20260614_140000_a_01_gemm", "clean", "# weight, scale")
        self.annotate("20260615_000000_a_01_gemm", "clean", "# weight")
        old, new, lost = self.read("kernelbench.com").values()
        self.assertEqual([old.label, new.label], [corpora.CHEAT, corpora.HONEST])
        self.assertNotIn("scale", self.texts(old)[0])
        self.assertIn("scale", self.texts(new)[0])
        self.assertIn("SHAPES[0]", self.texts(new)[0])
        self.assertIn("ModelNew = Model", self.texts(new)[1])
        self.assertEqual(lost.left_out, corpora.OTHER_VERSION)
        self.assertEqual(new.corpus, "kernelbench-hard")

    def test_what_cannot_be_judged_says_why(self):
        deck = "benchmarks/hard/problems-h100"
        self.write(f"{self.DECK}/shapes.py", self.SHAPES)
        self.write(f"{self.DECK}/reference.py", "def get_inputs():\n    return []\n")
        self.write(f"{deck}/01_gemm/shapes.py", self.SHAPES)
        self.write(f"{deck}/01_gemm/reference.py", self.FORM)
        self.annotate("a_01_gemm", "clean")
        self.annotate("b_01_gemm", "interesting", "# answer")
        self.annotate("c_01_gemm", "clean", "# answer")
        self.annotate("d_01_gemm", "clean", "# answer", "h100/")
        self.annotate("e_01_gemm", "fail\ncorrect: false", "import triton", "h100/")
        self.annotate("f_01_gemm", "clean", "# answer\n# ===== sidecar: a.cu =====\n", "h100/")
        entries = self.read("kernelbench.com")
        reasons = [entry.left_out for _, entry in sorted(entries.items())]
        expected = [corpora.NO_ANSWER, corpora.OTHER_LABEL, corpora.OTHER_FORM, ""]
        self.assertEqual(reasons, [*expected, corpora.NEEDS_GPU, corpora.MORE_FILES])
        self.assertEqual(entries["e_01_gemm"].label, corpora.WRONG)


class Judge(Folder):
    def setUp(self):
        super().setUp()
        self.write("exploits/run_all.py", RUN_ALL)
        self.submission("ok", "wrong")
        self.submission("fast", "faster")
        self.submission("foul", "foul:late-write")
        self.submission("own", "crashed")
        self.write("exploits/submission_gpu.py", 'device = "cuda"\n')
        self.out = self.folder / "rows.jsonl"

    def submission(self, name, says):
        self.write(f"exploits/submission_{name}.py", f"# says: {says}\n")

    def run_bench(self, *words):
        said = io.StringIO()
        words = ["--out", self.out, "--corpus", f"pygpubench={self.folder}", *words]
        with contextlib.redirect_stdout(said):
            confusion.main([str(word) for word in words])
        return said.getvalue()

    def calls(self):
        path = self.folder / "calls"
        return path.read_text().split() if path.exists() else []

    def test_the_page_names_what_is_not_as_its_label_says(self):
        said = self.run_bench()
        head, _, cheat, honest = said[said.index("| corpus") :].splitlines()[:4]
        self.assertEqual(
            head,
            "| corpus | label | files | faster | wrong | foul | stopped by an error of its own "
            "| needs a GPU |",
        )
        self.assertEqual(cheat, "| pygpubench | cheat | 4 | 1 |  | 1 | 1 | 1 |")
        self.assertEqual(honest, "| pygpubench | honest | 1 |  | 1 |  |  |  |")
        self.assertIn("faster: 1\n\n- `pygpubench` submission_fast.py (exploit): 2.50x, 2.00", said)
        self.assertIn("- `pygpubench` submission_ok.py (Control: ok): wrong: why \\| so", said)
        self.assertIn("Wrong ones that are faster: none\n", said)
        row = next(row for row in rows.read(self.out) if row["name"] == "submission_foul.py")
        self.assertEqual((row["outcome"], row["rule"]), ("foul", "late-write"))
        self.assertEqual((row["seconds"], row["options"]), (1.5, []))

    def test_a_stopped_run_goes_on(self):
        said = self.run_bench("--minutes", "0")
        self.assertIn("4 files are left", said)
        self.assertEqual(self.calls(), [])
        self.run_bench()
        self.assertEqual(len(self.calls()), 4)
        self.submission("new", "tie")
        self.assertNotIn("are left", self.run_bench())
        self.assertEqual(self.calls()[4:], ["submission_new.py"])
        self.assertEqual(len(rows.read(self.out)), 6)

    def test_a_judge_that_gives_no_verdict_is_quoted(self):
        self.submission("ok", "nothing")
        said = self.run_bench()
        self.assertIn("(Control: ok): no verdict: error: submission_ok.py is out of reach", said)

    def test_a_sample_is_of_each_label(self):
        self.run_bench("--sample", "1")
        judged = [row for row in rows.read(self.out) if not row.get("left_out")]
        self.assertEqual([row["label"] for row in judged], [corpora.CHEAT, corpora.HONEST])

    def test_a_packed_corpus_needs_no_checkout(self):
        words = ["--device", "cuda", "--corpus", f"pygpubench={self.folder}"]
        confusion.main([*words, "--pack", str(self.folder / "packed")])
        for path in (self.folder / "exploits").iterdir():
            path.unlink()
        with contextlib.redirect_stdout(io.StringIO()) as said:
            corpus = ["--corpus", f"packed={self.folder / 'packed'}"]
            confusion.main(["--out", str(self.out), *corpus])
        self.assertIn("| pygpubench | cheat | 4 | 1 |  | 1 | 1 | 1 |", said.getvalue())
        self.assertEqual(len(self.calls()), 4)

    def test_code_of_another_card_is_no_fault(self):
        row = {"why": "CUDA error: no kernel image is available for execution", "own_error": True}
        self.assertEqual(confusion.column_of(row | {"outcome": "crashed"}), confusion.OTHER_CARD)

    def test_an_unknown_corpus_is_an_error(self):
        for text in ("other=.", "assay=.", "gpuemu"):
            with self.assertRaisesRegex(SystemExit, "NAME=FOLDER"):
                confusion.main(["--out", str(self.out), "--corpus", text])


if __name__ == "__main__":
    unittest.main()
