"""The shipped kernels: each says which verdict it expects, and is as correct as it says.

Whether each is as fast as it says takes a quiet machine: bench/kernels.py judges that.
"""

import collections

import pytest
from kernels import shipped_kernels

from conftest import ROOT, chosen_parameters

KERNELS = {str(kernel.path.relative_to(ROOT / "kernels")): kernel for kernel in shipped_kernels()}


# Of their problems all kernels are judged in every run; the others by turns.
REPRESENTATIVES = ("softmax", "max_pool2d", "linear_gelu_residual", "selective_scan_block")


def by_turns(kernels):
    return [
        pytest.param(
            name, marks=[] if name.split("/")[0] in REPRESENTATIVES else pytest.mark.thorough
        )
        for name in kernels
    ]


@pytest.fixture(scope="module")
def judged():
    """Name -> verdict, of the kernels that this session has judged."""
    return {}


def judge_with_neighbours(name, neighbours, judge_many, judged):
    """One call for a problem's kernels: at tiny, correctness alone."""
    problem = KERNELS[name].problem
    names = [other for other in neighbours if KERNELS[other].problem == problem]
    paths = [KERNELS[other].path for other in names]
    arguments = ["--size", "tiny", "--correctness-only", "--no-save"]
    judged.update(zip(names, judge_many(problem, paths, arguments)))


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


@pytest.mark.parametrize("name", by_turns(KERNELS))
def test_each_kernel_is_as_correct_as_it_says(judge_many, judged, request, name):
    if name not in judged:
        judge_with_neighbours(name, chosen_parameters(request, "name"), judge_many, judged)
    verdict = judged[name]
    if KERNELS[name].expected == "wrong":
        assert verdict["outcome"] == "wrong", verdict["message"]
    else:
        assert verdict["outcome"] == "correct", verdict["message"]
        assert verdict["correctness"]["passed"], verdict["message"]
