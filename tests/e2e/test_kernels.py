"""The shipped kernels: each says which verdict it expects, and is as correct as it says.

Whether each is as fast as it says takes a quiet machine: bench/kernels.py judges that.
"""

import collections
import concurrent.futures
import sys

import pytest

from conftest import ROOT, UNSETTLED, WRONG, Assay

sys.path.insert(0, str(ROOT / "bench"))
from kernels import shipped_kernels  # noqa: E402

KERNELS = {str(kernel.path.relative_to(ROOT / "kernels")): kernel for kernel in shipped_kernels()}


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory):
    """Every kernel's verdict at tiny, correctness alone: a call a problem, two calls at a time."""
    assay = Assay(tmp_path_factory.mktemp("kernels"))
    groups = collections.defaultdict(list)
    for name, kernel in KERNELS.items():
        groups[kernel.problem].append((name, kernel))

    def judge(problem):
        paths = [kernel.path for _, kernel in groups[problem]]
        arguments = ["--size", "tiny", "--correctness-only", "--no-save"]
        run = assay.judge(problem, *paths, *arguments)
        assert run.code in (UNSETTLED, WRONG), run
        found = run.verdict if len(paths) > 1 else [run.verdict]
        return {name: verdict for (name, _), verdict in zip(groups[problem], found)}

    with concurrent.futures.ThreadPoolExecutor(2) as workers:
        # Each kernel's own test says what is wrong with a call that failed.
        futures = [workers.submit(judge, problem) for problem in groups if problem is not None]
    judged = {}
    for future in futures:
        if future.exception() is None:
            judged.update(future.result())
    return judged, [str(future.exception()) for future in futures if future.exception()]


def test_problems_of_every_level_have_kernels():
    levels = collections.Counter(
        problem.parent.name
        for problem in {kernel.problem for kernel in KERNELS.values()}
        if problem
    )
    assert levels["level1"] >= 9 and levels["level2"] >= 3 and levels["level3"] >= 2, levels
    forms = collections.Counter(kernel.path.suffix for kernel in KERNELS.values())
    assert forms[".py"] >= 2 and forms[".c"] >= 1, forms
    expected = {kernel.expected for kernel in KERNELS.values()}
    assert expected >= {"faster", "slower", "tie", "wrong"}, expected


@pytest.mark.parametrize("name", KERNELS)
def test_each_kernel_says_what_it_expects(name):
    kernel = KERNELS[name]
    assert kernel.problem is not None, "its folder has the name of a problem"
    assert kernel.expected is not None, "one line `expected: OUTCOME at SIZE`, or `expected: wrong`"


@pytest.mark.parametrize("name", KERNELS)
def test_each_kernel_is_as_correct_as_it_says(verdicts, name):
    judged, failures = verdicts
    assert name in judged, failures
    verdict = judged[name]
    if KERNELS[name].expected == "wrong":
        assert verdict["outcome"] == "wrong", verdict["message"]
    else:
        assert verdict["outcome"] == "unsettled", verdict["message"]  # its speed was not asked for
        assert verdict["correctness"]["passed"], verdict["message"]
