"""Counters and wrong accesses on a real GPU: `--profile` needs Nsight Compute and a driver that
lets users read counters, `--sanitize` Compute Sanitizer. Neither changes a verdict.
"""
import os
import shutil

import pytest

from conftest import CORRECT, assert_right
from test_verdicts import PYTHON, SOFTMAX


def has(program, variable):
    folders = os.environ.get("PATH", "") + ":/usr/local/cuda/bin"
    return os.environ.get(variable) or shutil.which(program, path=folders)


needs_ncu = pytest.mark.skipif(not has("ncu", "ASSAY_NCU"), reason="Nsight Compute is not there")
needs_sanitizer = pytest.mark.skipif(
    not has("compute-sanitizer", "ASSAY_COMPUTE_SANITIZER"), reason="Compute Sanitizer is not there"
)
LARGE = ("--set", "ROWS=8192", "--set", "COLUMNS=8192")
HONEST = SOFTMAX.replace("EXTRA", "")
# Beyond every buffer: what lies beside an output is the judge's, and gate 1 sees it.
OUT_OF_BOUNDS = SOFTMAX.replace("EXTRA", "if (threadIdx.x == 0) out[1LL << 40] = 1;")
# Each thread reads what its neighbour writes, without a barrier between.
RACE = """//! dim      rows = x.size(0)
//! constant COLUMNS = x.size(1)
//! tune     BLOCK = 256
//! launch   rows_of grid=(rows) block=(BLOCK) args=(x, out)
extern "C" __global__ void rows_of(const float* x, float* out) {
  __shared__ float part[BLOCK];
  const long long begin = (long long)blockIdx.x * COLUMNS;
  float sum = 0;
  for (int i = threadIdx.x; i < COLUMNS; i += BLOCK) sum += expf(x[begin + i]);
  part[threadIdx.x] = sum;
  float all = 0;
  for (int i = 0; i < BLOCK; ++i) all += part[i];
  for (int i = threadIdx.x; i < COLUMNS; i += BLOCK) out[begin + i] = expf(x[begin + i]) / all;
}
"""


@needs_ncu
@pytest.mark.alone
def test_a_softmax_is_bound_by_memory(judge):
    verdict = judge("softmax.cu", HONEST, options=["--profile", *LARGE], size=None)
    assert_right(verdict)
    assert verdict["sanitizer"] is None
    profile = verdict["profile"]
    assert profile["failure"] is None, profile
    (kernel,) = profile["kernels"]
    assert kernel["name"] == "rows_of" and kernel["launches"] == 1
    assert kernel["cycles_share"] == 1
    assert max(kernel["dram_percent"], kernel["memory_percent"]) > 50
    assert kernel["dram_bytes"] >= 8192 * 8192 * 4
    assert kernel["load_used_percent"] > 90 and kernel["store_used_percent"] > 90
    assert kernel["tensor_percent"] < 20
    assert kernel["stalls"] and sum(kernel["stalls"].values()) <= 100.5
    assert verdict["bottleneck"]


@needs_ncu
def test_strided_loads_are_uncoalesced(judge):
    strided = SOFTMAX.replace("EXTRA", "").replace(
        "largest = fmaxf(largest, x[begin + i]);",
        "largest = fmaxf(largest, x[begin + (i * 33LL) % COLUMNS]);",
    )
    # The stride passes by some of 444 columns, say, where the largest may stand.
    options = ["--profile", "--correctness-only", "--one-size", *LARGE]
    verdict = judge("strided.cu", strided, options=options, size=None)
    assert_right(verdict)
    (kernel,) = verdict["profile"]["kernels"]
    assert kernel["load_used_percent"] < 90, kernel


@needs_ncu
def test_a_candidate_in_python_is_profiled_kernel_by_kernel(judge):
    powers = "torch.exp(x - x.amax(-1, keepdim=True))"
    body = f"{powers} / {powers}.sum(-1, keepdim=True)"
    verdict = judge("chain.py", PYTHON.format(body), options=["--profile", "--correctness-only"])
    assert verdict["outcome"] in CORRECT, verdict["message"]
    profile = verdict["profile"]
    assert profile["failure"] is None, profile
    assert sum(kernel["launches"] for kernel in profile["kernels"]) >= 5
    assert abs(sum(kernel["cycles_share"] for kernel in profile["kernels"]) - 1) < 1e-6
    shares = [kernel["cycles_share"] for kernel in profile["kernels"]]
    assert shares == sorted(shares, reverse=True)


@needs_ncu
def test_a_wrong_candidate_is_not_profiled(judge):
    wrong = HONEST.replace("/ sum;", "/ sum * 1.01f;")
    verdict = judge("wrong.cu", wrong, options=["--profile"])
    assert verdict["outcome"] == "wrong"
    assert verdict["profile"] == {"failure": "not profiled: wrong", "kernels": []}


@needs_sanitizer
@pytest.mark.parametrize("tool", ["memcheck", "racecheck", "initcheck", "synccheck"])
def test_nothing_is_found_in_an_honest_kernel(judge, tool):
    options = ["--sanitize", tool, "--correctness-only"]
    verdict = judge("softmax.cu", HONEST, options=options)
    assert_right(verdict)
    record = verdict["sanitizer"]
    assert record["tool"] == tool and record["failure"] is None, record
    if tool != "initcheck":  # to it, what the judge's process wrote is not written
        assert record["errors"] == 0 and record["findings"] == [], record


@needs_sanitizer
def test_nothing_is_found_in_pytorch(judge):
    options = ["--sanitize", "memcheck", "--correctness-only"]
    verdict = judge("torch.py", PYTHON.format("torch.softmax(x, dim=-1)"), options=options)
    assert verdict["outcome"] in CORRECT, verdict["message"]
    assert verdict["sanitizer"] == {
        "tool": "memcheck",
        "failure": None,
        "errors": 0,
        "findings": [],
    }


@needs_sanitizer
def test_an_access_out_of_bounds_is_found_where_it_is_made(judge):
    verdict = judge("wild.cu", OUT_OF_BOUNDS, options=["--sanitize", "memcheck"])
    assert verdict["outcome"] == "crashed", verdict["message"]
    record = verdict["sanitizer"]
    assert record["failure"] is None and record["errors"] > 0, record
    assert "Invalid __global__ write of size 4 bytes" in record["findings"][0], record
    assert "rows_of" in record["findings"][0]
    assert_right(judge("after.cu", HONEST, options=["--correctness-only"]))


@needs_sanitizer
def test_a_race_in_shared_memory_is_found(judge):
    verdict = judge("race.cu", RACE, options=["--sanitize", "racecheck", "--correctness-only"])
    record = verdict["sanitizer"]
    assert record["failure"] is None and record["errors"] > 0, record
    assert any("ace" in finding for finding in record["findings"]), record


@needs_ncu
@needs_sanitizer
def test_both_leave_the_verdict_as_it_is(judge_all):
    candidates = [("first.cu", HONEST), ("second.py", PYTHON.format("torch.softmax(x, dim=-1)"))]
    options = ["--profile", "--sanitize", "memcheck", "--correctness-only"]
    for verdict in judge_all(candidates, options=options):
        assert_right(verdict)
        assert verdict["message"] == "correct; its speed was not asked for"
        assert verdict["profile"]["failure"] is None, verdict["profile"]
        assert verdict["sanitizer"]["failure"] is None, verdict["sanitizer"]
