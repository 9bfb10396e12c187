"""Tests what bench/claims.py concludes of a claim and a verdict, and its page."""
import pathlib
import sys
import tempfile
import types
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))
import claims


def verdict(outcome, speedup=None, ci=None, message="", right_with_weights=None):
    speed = {"baselines": {"eager": {"speedup": speedup, "ci": ci}}} if speedup else None
    return {
        "outcome": outcome,
        "message": message,
        "speed": speed,
        "correctness": {"right_with_weights": right_with_weights},
        "candidate": {"hash": "0" * 8},
        "seed": "1",
        "created": "2026-11-28T15:00:00Z",
        "problem": {"weights": "varied"},
        "machine": {"gpu": "a card"},
    }


class Conclusion(unittest.TestCase):
    def expect(self, end, claimed, *arguments, **more):
        self.assertEqual(claims.conclusion(claimed, verdict(*arguments, **more))[0], end)

    def test_a_claim_within_the_interval_is_certified(self):
        self.expect("certified", 1.3, "faster", 1.2, [1.1, 1.4])
        self.expect("certified", 1.0, "faster", 1.2, [1.1, 1.4])

    def test_below_the_claim_it_is_refuted(self):
        self.expect("refuted", 1.5, "faster", 1.2, [1.1, 1.4])
        self.expect("refuted", 1.5, "not_faster", 0.9, [0.8, 1.1])
        self.expect("refuted", 1.1, "slower", 0.5, [0.4, 0.6])
        self.expect("refuted", 1.1, "wrong")

    def test_without_a_decision_it_is_open(self):
        self.expect("unsettled", 1.1, "unsettled", 1.2, [1.0, 1.4])
        self.expect("unsettled", 1.1, "crashed")
        # It was not asked what its author measured: weights that are prepared once.
        self.expect("unsettled", 1.1, "wrong", right_with_weights="constant")
        self.expect("unsettled", 1.1, "wrong", message="no kernel image is available here")


class Pick(unittest.TestCase):
    def test_all_cheats_and_twice_as_many_honest_ones(self):
        labels = [claims.CHEAT] * 2 + [claims.HONEST] * 20 + [None]
        rows = [{"origin": {"shape": 1, "label": label}} for label in labels]
        rows += [{"origin": {"shape": 2, "label": claims.CHEAT}}]
        picked = [row["origin"]["label"] for row in claims.pick(rows, 0)]
        self.assertEqual(picked, [claims.CHEAT] * 2 + [claims.HONEST] * 4)

    def test_claims_are_spread_evenly(self):
        rows = [{"origin": {"task_id": number}} for number in range(10)]
        picked = [row["origin"]["task_id"] for row in claims.pick(rows, 3)]
        self.assertEqual(picked, [0, 3, 6])


class Page(unittest.TestCase):
    def test_what_is_written_by_hand_stays(self):
        origin = {"format": "cuda-l1", "level_id": 1, "task_id": 9, "claimed_speedup": 2.0}
        message = "correct, but the budget ended: --budget 9 has room"
        rows = [claims.row_of(origin, verdict("unsettled", 1.2, [1.1, 1.4], message))]
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "claims.md"
            page.write_text("# Own\n\n" + claims.BEGIN + "old\n" + claims.END + "\nMore.\n")
            claims.write_page(types.SimpleNamespace(page=page), rows, "rows.jsonl")
            text = page.read_text()
        self.assertTrue(text.startswith("# Own\n") and text.endswith("\nMore.\n"), text)
        self.assertNotIn("old", text)
        self.assertIn("| cuda-l1 | level1_9 | 2.00 | 1.20 (1.10 to 1.40) | unsettled |", text)
        self.assertNotIn("--budget", text)


if __name__ == "__main__":
    unittest.main()
