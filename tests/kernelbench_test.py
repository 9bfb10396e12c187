"""The pure parts of scripts/kernelbench: its table of sizes, the renamed copy, lowered constants
and what becomes of a judgement. No judge, no PyTorch and no checkout of KernelBench."""

import importlib.machinery
import importlib.util
import json
import pathlib
import re
import sys
import tempfile
import tomllib
import unittest

sys.dont_write_bytecode = True
SCRIPTS = pathlib.Path(__file__).resolve().parents[1] / "scripts"


def load():
    loader = importlib.machinery.SourceFileLoader("kernelbench", str(SCRIPTS / "kernelbench"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("kernelbench", loader))
    loader.exec_module(module)
    return module


kernelbench = load()
CORRECT = {"passed": True, "error_ratio": 0.1, "note": None, "draws": []}


def verdict(outcome, correctness):
    return {
        "outcome": outcome,
        "correctness": correctness,
        "speed": None,
        "toolchain": {"pytorch": "1.13.0"},
        "machine": {"cores": 2, "threads": 1},
    }


def line(level, number, **changes):
    fields = {"loads": True, "runs": True, "correct": True, "faster": False}
    fields |= {"outcome": "unsettled", "sizes": "table", "file": f"level{level}/{number}_x.py"}
    return fields | changes


class Table(unittest.TestCase):
    def setUp(self):
        self.table = tomllib.loads((SCRIPTS / "kernelbench_sizes.toml").read_text())

    def test_has_an_entry_for_each_file_of_the_three_levels(self):
        counts = {level: len(entries) for level, entries in self.table.items()}
        self.assertEqual(counts, {"level1": 100, "level2": 100, "level3": 50})

    def test_entries_are_named_like_files_and_hold_integers(self):
        for level, entries in self.table.items():
            for stem, sizes in entries.items():
                with self.subTest(f"{level}/{stem}"):
                    self.assertRegex(stem, r"^\d+_\w+$")
                    self.assertTrue(sizes)
                    for name, value in sizes.items():
                        self.assertTrue(name.isidentifier())
                        values = value if isinstance(value, list) else [value]
                        self.assertTrue(values)
                        self.assertTrue(all(type(each) is int and each > 0 for each in values))

    def test_numbers_run_without_a_gap(self):
        for level, entries in self.table.items():
            numbers = [int(re.match(r"\d+", stem).group()) for stem in entries]
            self.assertEqual(numbers, list(range(1, len(entries) + 1)), level)


class Copy(unittest.TestCase):
    def test_renames_the_class_wherever_it_names_itself(self):
        source = (
            "class Model(nn.Module):\n  def __init__(self):\n    super(Model, self).__init__()\n"
        )
        copy = kernelbench.candidate_of(source)
        self.assertIn("class ModelNew(nn.Module)", copy)
        self.assertIn("super(ModelNew, self)", copy)
        self.assertIn("class ModelNew:", kernelbench.candidate_of("class Model:\n"))

    def test_leaves_other_names_alone(self):
        source = "class ModelPart(nn.Module): pass\nclass MyModel(nn.Module): pass\n# a Model of\n"
        self.assertEqual(kernelbench.candidate_of(source), source)


class Lowered(unittest.TestCase):
    def test_lowers_batches_and_large_constants(self):
        source = "batch_size = 128\nN = 1024 * 2\nkernel_size = 3\nname = 'x'\nscale = 2.0\n"
        self.assertEqual(kernelbench.lowered(source, 1), {"batch_size": 2, "N": 256})
        self.assertEqual(kernelbench.lowered(source, 3), {"batch_size": 2, "N": 64})

    def test_sees_constants_that_are_assigned_together(self):
        source = "height = width = 128\nd, h = 16, 32\na, b = make()\nwidth = 512\n"
        expected = {"height": 128, "width": 512, "d": 16, "h": 32, "a": None, "b": None}
        self.assertEqual(kernelbench.constants(source), expected)


class Settings(unittest.TestCase):
    TABLE = {"level1": {"1_a": {"N": 64}}}

    def test_takes_the_entry_of_the_file(self):
        self.assertEqual(
            kernelbench.settings_of("1", "1_a", "N = 4096\n", self.TABLE), ([{"N": 64}], True)
        )

    def test_lowers_the_constants_of_a_file_without_an_entry(self):
        attempts, known = kernelbench.settings_of("1", "2_b", "rows = 4096\n", self.TABLE)
        self.assertFalse(known)
        self.assertEqual(attempts, [{"rows": 512}, {"rows": 64}, {"rows": 64}])

    def test_an_entry_with_a_constant_that_the_file_lacks_does_not_count(self):
        _, known = kernelbench.settings_of("1", "1_a", "rows = 4096\n", self.TABLE)
        self.assertFalse(known)


class Outcome(unittest.TestCase):
    def outcome(self, returncode, judged, message):
        result = kernelbench.outcome_of(returncode, judged, message)
        return tuple(result[name] for name in ("loads", "runs", "correct", "faster"))

    def test_a_correct_copy_loads_runs_and_is_not_faster(self):
        judged = verdict("unsettled", CORRECT)
        self.assertEqual(self.outcome(7, judged, "correct"), (True, True, True, False))

    def test_a_faster_copy_is_seen(self):
        self.assertEqual(self.outcome(0, verdict("faster", CORRECT), ""), (True,) * 4)

    def test_a_wrong_copy_runs(self):
        judged = verdict("wrong", CORRECT | {"passed": False})
        self.assertEqual(self.outcome(3, judged, "differs"), (True, True, False, False))

    def test_a_candidate_that_dies_before_gate_1_has_a_problem_that_loads(self):
        self.assertEqual(
            self.outcome(5, verdict("crashed", None), "signal 11"), (True, False, False, False)
        )

    def test_a_forward_that_throws_loads(self):
        message = "forward fails: problem.py line 9: AttributeError: no such function"
        self.assertEqual(self.outcome(2, {}, message), (True, False, False, False))

    def test_an_import_that_throws_does_not_load(self):
        message = "problem.py line 4: ModuleNotFoundError: No module named 'x'"
        self.assertEqual(self.outcome(2, {}, message), (False,) * 4)


class Sweep(unittest.TestCase):
    def test_a_whole_sweep_is_good_from_235_on(self):
        lines = [line(1, number, runs=number <= 235) for number in range(1, 251)]
        self.assertTrue(kernelbench.good(lines, whole=True))
        lines[0]["runs"] = False
        self.assertFalse(kernelbench.good(lines, whole=True))

    def test_a_part_is_good_when_all_of_it_runs(self):
        self.assertTrue(kernelbench.good([line(1, 1)], whole=False))
        self.assertFalse(kernelbench.good([line(1, 1), line(1, 2, runs=False)], whole=False))
        self.assertFalse(kernelbench.good([], whole=False))

    def test_one_that_is_faster_or_wrong_is_never_good(self):
        lines = [line(1, number) for number in range(1, 251)]
        for change in ({"faster": True}, {"outcome": "wrong", "correct": False}):
            bad = lines[:-1] + [line(1, 250, **change)]
            self.assertFalse(kernelbench.good(bad, whole=True))

    def test_the_table_counts_by_level(self):
        lines = [line(1, 1), line(1, 2, runs=False, correct=False), line(3, 1, sizes="lowered")]
        text = kernelbench.summary(lines)
        self.assertRegex(text, r"\n1 +2 +2 +1 +1 +0\n3 +1 +1 +1 +1 +0\n")
        self.assertIn("not in the table of sizes: level3/1_x.py", text)
        self.assertIn("2 of 3 load and run\n2 correct\n0 faster", text)

    def test_a_line_that_was_cut_off_is_judged_again(self):
        with tempfile.TemporaryDirectory() as folder:
            output = pathlib.Path(folder) / "lines.jsonl"
            output.write_text(json.dumps(line(1, 1)) + '\n{"file": "level1/2_x')
            self.assertEqual(list(kernelbench.read_lines(output)), ["level1/1_x.py"])
            self.assertTrue(output.read_text().endswith("\n"))


class Checkout(unittest.TestCase):
    def test_files_come_level_by_level_in_the_order_of_their_numbers(self):
        with tempfile.TemporaryDirectory() as folder:
            level = pathlib.Path(folder) / "KernelBench" / "level1"
            level.mkdir(parents=True)
            for name in ("10_c.py", "2_b.py", "1_a.py", "notes.txt"):
                (level / name).write_text("")
            for root in (level.parents[1], level.parent):
                found = kernelbench.find_files(root, kernelbench.LEVELS, "*")
                self.assertEqual([path.name for _, path in found], ["1_a.py", "2_b.py", "10_c.py"])
            found = kernelbench.find_files(level.parent, kernelbench.LEVELS, "2_*")
            self.assertEqual([path.name for _, path in found], ["2_b.py"])

    def test_a_folder_without_levels_is_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(ValueError, "no folders level1"):
                kernelbench.find_files(pathlib.Path(folder), kernelbench.LEVELS, "*")


if __name__ == "__main__":
    unittest.main()
