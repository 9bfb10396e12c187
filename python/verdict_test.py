"""Verdicts and their cards, on the raw results of this repository."""

import dataclasses
import json
import unittest
import xml.etree.ElementTree as tree

import faked

import assay
from assay import _card

ROOT = faked.HERE.parent
RESULTS = ROOT / "bench" / "results" / "cpu-2core"
SVG = "{http://www.w3.org/2000/svg}"


def raw(**changes):
    record = json.loads((RESULTS / "readme_card.json").read_text(encoding="utf-8"))
    return {**record, **changes}


def texts(html):
    return [each.text for each in tree.fromstring(html).iter(f"{SVG}text")]


class VerdictTest(unittest.TestCase):
    def test_a_faster_one(self):
        verdict = assay.Verdict.from_json(raw())
        self.assertIs(verdict.outcome, assay.Outcome.FASTER)
        self.assertEqual(f"{verdict.outcome}, {verdict.outcome!s:8}|", "faster, faster  |")
        self.assertTrue(verdict.correct and verdict.faster)
        self.assertAlmostEqual(verdict.speed.time_us, 880.9035)
        self.assertAlmostEqual(verdict.speed.baseline_time_us, 2319.39075)
        self.assertAlmostEqual(verdict.speedup, 2.591, places=3)
        self.assertEqual(verdict.score, verdict.certified_speedup)
        self.assertEqual(verdict.raw, raw())
        told = "<Verdict 364bff4d9e83: fused.cpp on softmax: faster, 2.59x>"
        self.assertEqual(repr(verdict), told)
        with self.assertRaises(dataclasses.FrozenInstanceError):
            verdict.id = "another"

    def test_luck_earns_nothing_and_fouls_neither(self):
        record = raw()
        record["speed"]["baselines"]["eager"]["certified_speedup"] = None
        self.assertEqual(assay.Verdict.from_json(record).score, 1.0)
        record["foul"] = {"rule": "late-write", "seen": "..."}
        caught = assay.Verdict.from_json(record)
        self.assertEqual((caught.correct, caught.score, caught.foul), (False, 0.0, "late-write"))
        self.assertEqual(assay.Verdict.from_json(raw(correctness=None)).score, 0.0)

    def test_feedback_has_the_log_of_what_did_not_build(self):
        failed = raw(outcome="build_failed", message="no semicolon", log="line 3", speed=None)
        feedback = assay.Verdict.from_json(failed).feedback
        self.assertEqual(feedback, "build_failed: no semicolon\nline 3")

    def test_what_another_version_says_is_refused(self):
        for changes in ({"schema": "assay.verdict/2"}, {"outcome": "lost"}, {"cause": "weather"}):
            with self.assertRaises(assay.InternalError):
                assay.Verdict.from_json(raw(**changes))

    def test_enums_are_those_of_the_schema(self):
        schema = json.loads((ROOT / "docs" / "verdict.schema.json").read_text(encoding="utf-8"))
        fields = schema["properties"]
        self.assertEqual([each.value for each in assay.Outcome], fields["outcome"]["enum"])
        causes = [each.value for each in assay.Cause]
        self.assertEqual([*causes, None], fields["cause"]["enum"])
        speed = fields["speed"]["properties"]["baselines"]["additionalProperties"]["properties"]
        self.assertEqual([each.value for each in assay.Decision], speed["decision"]["enum"])


class CardTest(unittest.TestCase):
    def test_every_recorded_verdict_has_a_card(self):
        rows = (RESULTS / "kernel_verdicts.jsonl").read_text(encoding="utf-8").splitlines()
        outcomes = set()
        for row in map(json.loads, rows):
            verdict = assay.Verdict.from_json(row.get("verdict", row))
            self.assertIn(verdict.message.split()[0], " ".join(texts(verdict._repr_html_())))
            outcomes.add(verdict.outcome)
        self.assertGreater(len(outcomes), 2)

    def test_it_says_what_counts(self):
        html = assay.Verdict.from_json(raw())._repr_html_()
        shown = texts(html)
        self.assertEqual(shown[0], "FASTER")
        # The interval's words stand beneath its bar: they were drawn by its own ends once.
        drawing = tree.fromstring(html)
        places = {each.text: float(each.get("x")) for each in drawing.iter(f"{SVG}text")}
        bar = list(drawing.iter(f"{SVG}rect"))[-1]
        self.assertAlmostEqual(places["between 2.55x and 2.65x"], float(bar.get("x")), delta=10)
        self.assertIn("2.59x: 881 \N{MICRO SIGN}s a call, eager 2.32 ms, 3 pairs", shown)

    def test_texts_of_others_are_escaped_and_bounded(self):
        bad = "</text><script>alert('&')</script>\x07" * 40
        record = raw(message=bad, outcome="build_failed", log=bad, foul={"rule": bad, "seen": bad})
        record["candidate"]["path"] = record["problem"]["name"] = '"><b>'
        html = assay.Verdict.from_json(record)._repr_html_()
        self.assertNotIn("<script", html)
        self.assertEqual({each.tag for each in tree.fromstring(html)}, {
            f"{SVG}{name}" for name in ("rect", "text", "path")
        })  # fmt: skip
        self.assertLess(len(html), 20_000)

    def test_times(self):
        for time_us, text in ((0.25, "0.25 \N{MICRO SIGN}s"), (1500, "1.5 ms"), (2e6, "2 s")):
            self.assertEqual(_card.time_of(time_us), text)
        self.assertEqual(_card.time_of(None), "no time")


if __name__ == "__main__":
    unittest.main()
