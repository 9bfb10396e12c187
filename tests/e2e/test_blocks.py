"""How long timed blocks are made."""
import pytest

from conftest import CORRECT, FOUL, SOFTMAX, SOFTMAX_BODY, spans

# A call that comes alone takes 300 us longer than one in a row, as on a device, where a launch and
# the wait for it do.
SLOW_ALONE = """
#include <assay/kernel.h>
#include <chrono>
#include <cmath>
using Clock = std::chrono::steady_clock;
static Clock::time_point last_end;
ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<float, 2> y) {
  const auto begin = Clock::now();
  if (begin - last_end > std::chrono::microseconds(40))
    while (Clock::now() - begin < std::chrono::microseconds(300)) {
    }
  RIGHT
  last_end = Clock::now();
}
""".replace("RIGHT", SOFTMAX_BODY)


def test_blocks_that_turn_out_short_get_longer_in_the_same_hosts(assay, write, tmp_path):
    """Calls were laid out by single ones, and blocks came out a tenth as long as wanted. That was
    noticed once a pair had been measured, which was lost then, with the start of its hosts.
    """
    kernel, trace = write("slow_alone.cpp", SLOW_ALONE), tmp_path / "trace.json"
    size = ("--set", "ROWS=16", "--set", "COLUMNS=32")
    run = assay.judge(SOFTMAX, kernel, "--against", kernel, *size, "-q", ASSAY_TRACE=str(trace))
    # On a busy machine it may pass for one that computes calls ahead of their turn.
    assert run.code in CORRECT + (FOUL,), run
    found = spans(trace)
    assert "lengthen blocks" in found
    assert found.index("lengthen blocks") < found.index("pair"), "before the first pair has ended"
    # Pairs that count end with steps. One may be lost all the same, where a block was held up just
    # as its length was looked at.
    assert found.count("pair") <= found.count("steps") + 1


LEAVES = """import sys, torch
def leave(*_):
    raise RuntimeError({text!r})
sys.modules["assay_host.blocks"].run_blocks = leave
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)
"""


@pytest.mark.parametrize(
    "text, outcome",
    [
        ("CUDA out of memory. Tried to allocate 2 GiB", "out_of_memory"),
        # A candidate does not get the machine blamed for it, which would end the call.
        ("no such device", "crashed"),
    ],
)
def test_a_host_that_does_not_enter_its_blocks_says_why(assay, write, text, outcome):
    """The judge waited 60 s for one whose memory did not do, and said that it had timed out."""
    result = assay.judge(SOFTMAX, write("leaves.py", LEAVES.format(text=text)), "--size", "tiny")
    assert result.verdict["outcome"] == outcome, result
    assert text in result.verdict["message"], result
    assert "stopped preparing its slots" in result.verdict["message"], result
