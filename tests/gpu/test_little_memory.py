"""A device with little memory left, as a small card has."""
from pathlib import Path

import pytest

from conftest import assert_right
from other_program import all_but

pytestmark = pytest.mark.alone

KERNELS = Path(__file__).parents[2] / "kernels" / "softmax"
SAME = Path(__file__).with_name("same.py").read_text(encoding="utf-8")
ONE_READ, NATIVE = (
    (KERNELS / name).read_text(encoding="utf-8") for name in ("one_read.cu", "native.cu")
)


@pytest.mark.parametrize("left, rows, columns", [(8, 1024, 2048), (12, 8192, 8192)])
def test_hosts_start_one_by_one_where_few_fit(judge_all, left, rows, columns):
    """Slots were made for the whole card, and hosts of later pairs had what the first one needed:
    the call ended without a verdict.
    """
    options = ["--set", f"ROWS={rows}", "--set", f"COLUMNS={columns}", "--budget", "10"]
    with all_but(left):
        same, kernel = judge_all(
            [("same.py", SAME), ("one_read.cu", ONE_READ)],
            size=None,
            options=options,
        )
    assert_right(same)
    assert same["outcome"] in ("tie", "unsettled"), same["message"]
    assert_right(kernel)


def test_code_of_the_candidates_own_is_not_faster_by_blocks_that_it_could_work_ahead(judge):
    """A block is one call there, over within the time that its host may have its inputs before the
    clock; with all of the device's memory this kernel is twice as fast as PyTorch.
    """
    with all_but(12):
        verdict = judge(
            "native.cu",
            NATIVE,
            size=None,
            options=["--set", "ROWS=8192", "--set", "COLUMNS=8192", "--budget", "10"],
        )
    assert_right(verdict)
    assert verdict["outcome"] != "faster", verdict["speed"]


def test_a_problem_that_does_not_fit_is_told_what_would(judge):
    with all_but(6), pytest.raises(AssertionError) as refused:
        judge("same.py", SAME, size=None, options=["--set", "ROWS=8192", "--set", "COLUMNS=8192"])
    assert "It would fit with --set ROWS=4096" in str(refused.value), refused.value
