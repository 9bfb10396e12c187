"""`--sustained` on a real GPU: both sides without pauses, and the clock of each block."""
import pytest

from conftest import assert_right
from test_profile import HONEST, LARGE


@pytest.mark.alone
def test_a_run_without_pauses_has_the_clock_of_each_block(judge):
    verdict = judge("softmax.cu", HONEST, options=["--sustained", "2", *LARGE], size=None)
    assert_right(verdict)
    record = verdict["sustained"]
    short = verdict["speed"]["baselines"]["eager"]
    launched = short["launched"] or short
    for side in ("reference", "candidate"):
        found = record[side]
        assert len(found["sm_mhz"]) == len(found["block_ns"])
        assert all(300 < mhz < 3000 for mhz in found["sm_mhz"])
        assert found["running_share"] > 0.5
        assert 1e9 < sum(found["block_ns"]) < 4e9
    # Memory binds it: its speed does not follow the clock.
    assert 0.8 < record["candidate"]["time_ns"] / launched["candidate_time_ns"] < 1.25
