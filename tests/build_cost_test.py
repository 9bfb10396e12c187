"""What bench/build_cost.py says of a build and the one before it."""

import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "bench")]

import build_cost


def row(cpu_s, target="all", cores=2, why=""):
    return {
        "commit": "0123456789",
        "target": target,
        "cpu_s": cpu_s,
        "why": why,
        "cores": cores,
        "cpu": "a CPU",
        "compiler": "g++ 12",
    }


class BuildCost(unittest.TestCase):
    def test_only_the_last_of_the_same_target_and_machine_is_compared(self):
        rows = [row(50), row(100), row(40, target="judge"), row(30, cores=8)]
        self.assertEqual(build_cost.compared(rows, row(101))["cpu_s"], 100)
        self.assertEqual(build_cost.compared(rows, row(1, target="judge"))["cpu_s"], 40)
        self.assertIsNone(build_cost.compared(rows, row(1, cores=4)))
        text, stands = build_cost.says(None, row(7))
        self.assertTrue(stands)
        self.assertIn("nothing to compare with", text)

    def test_growth_needs_a_reason(self):
        self.assertTrue(build_cost.says(row(100), row(103))[1])
        text, stands = build_cost.says(row(100), row(104))
        self.assertFalse(stands)
        self.assertIn("1.040 times those of 01234567", text)
        self.assertTrue(build_cost.says(row(100), row(104, why="a parser of PTX"))[1])


if __name__ == "__main__":
    unittest.main()
