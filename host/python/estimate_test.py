"""kEstimate: bytes of a problem without allocating them, and a --set that would fit."""

import re
import unittest

from fake_judge import Judge, wire

LARGE = """
import torch, torch.nn as nn
batch_size = 16
features = 16384
depth = features // 4
TITLE = 'large'
class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
    def forward(self, x):
        return torch.relu(self.norm(x))
def get_inputs():
    return [torch.rand(batch_size, depth // 4, features) for _ in range(1)]
def get_init_inputs():
    return [features]
"""


def peak_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(re.search(r"VmHWM:\s+(\d+) kB", file.read()).group(1))


class EstimateTest(unittest.TestCase):
    def setUp(self):
        self.judge = Judge()
        self.addCleanup(self.judge.close)

    def estimate(self, source, limit):
        self.judge.write("problem/problem.py", source)
        return self.judge.request(wire.ESTIMATE, limit)

    def test_six_gigabytes_are_counted_without_being_allocated(self):
        source = LARGE.replace("batch_size = 16", "batch_size = 96")
        tensor = 96 * 1024 * 16384 * 4
        self.estimate(LARGE.replace("16384", "1024"), 0)  # imports what fake tensors need
        before = peak_kib(self.judge.pid)
        done = self.estimate(source, 2 * tensor + 2**20)
        self.assertEqual(done[:4], [tensor, 2 * 16384 * 4, tensor, 1])
        self.assertGreater(done[0], 6e9)
        self.assertLess(peak_kib(self.judge.pid) - before, 50 * 1024)
        self.assertGreaterEqual(
            done[4], 2 * tensor
        )  # the normalised values and the output live at once

    def test_a_problem_that_fits_gets_no_advice(self):
        self.estimate(LARGE.replace("16384", "1024"), 2**40)
        self.assertEqual(self.judge.message(), "")

    def test_the_advice_fits(self):
        done = self.estimate(LARGE, 200 * 2**20)
        self.assertGreater(done[5], 200 * 2**20)
        text = self.judge.message()
        self.assertTrue(text.startswith("--set "), text)
        options = dict(re.findall(r"--set (\w+)=(\d+)", text))
        self.assertTrue(set(options) <= {"batch_size", "features"}, text)
        other = Judge(settings={"set": options})
        self.addCleanup(other.close)
        other.write("problem/problem.py", LARGE)
        done = other.request(wire.ESTIMATE, 200 * 2**20)
        # On a CPU less than fits the memory: it fits the time, too.
        self.assertLessEqual(done[5], 2**27)
        self.assertEqual(other.message(), "")

    def test_what_cannot_be_followed_is_left_out(self):
        source = LARGE.replace("16384", "64").replace(
            "return torch.relu(self.norm(x))",
            "return x[x.flatten().tolist()[0] > 2:].numpy().sum()",
        )
        done = self.estimate(source, 0)
        self.assertEqual(
            done[:4], [16 * 4 * 64 * 4, 2 * 64 * 4, 0, 1]
        )  # the forward alone is unknown
        self.assertEqual(self.estimate("import torch\nraise ValueError()\n", 1)[3], 0)

    def test_the_problem_loads_after_its_estimate(self):
        source = LARGE.replace("16384", "64")
        self.estimate(source, 0)
        self.judge.load(source)
        self.judge.lay_out(1)
        self.judge.draw(1)
        self.judge.evaluate(0, 0)
        self.assertGreater(self.judge.tensor("out").std().item(), 0.1)


if __name__ == "__main__":
    unittest.main()
