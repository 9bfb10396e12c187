"""As tests/e2e/test_near_ties.py, with truths that are computed and compared on the device."""

from pathlib import Path

from conftest import assert_right

PROBLEM = Path(__file__).parents[1] / "problems" / "choices.py"
ONE_BY_ONE = """import torch
class ModelNew(torch.nn.Module):
    def forward(self, keys, values):
        scores = torch.zeros_like(keys[..., 0])
        for i in range(keys.shape[-1]):
            scores = scores + keys[..., i] / 1024
        return (torch.softmax(scores, -1).unsqueeze(-1) * values).sum(1)
"""
WRONG_WHERE_IT_IS_NEAR = """import torch
class ModelNew(torch.nn.Module):
    def forward(self, keys, values):
        scores = keys.double().sum(-1) / 1024
        weights = torch.softmax(scores, -1)
        near = ((scores[:, 0] - scores[:, 1]).abs() < 1e-3) & (scores[:, 0].abs() > 300)
        weights = torch.where(near.unsqueeze(-1), weights * 9, weights).to(values.dtype)
        return (weights.unsqueeze(-1) * values).sum(1)
"""


def test_an_honest_program_may_choose_otherwise_where_rounding_decides(judge):
    verdict = judge(
        "one_by_one.py", ONE_BY_ONE, str(PROBLEM), size=None, options=["--budget", "10"]
    )
    assert_right(verdict)
    note = verdict["correctness"]["note"]
    assert "left out" in note and "huge-scale" in note, note


def test_nothing_else_is_left_out(judge):
    verdict = judge(
        "near.py", WRONG_WHERE_IT_IS_NEAR, str(PROBLEM), size=None, options=["--seed", "3"]
    )
    assert verdict["outcome"] == "wrong", verdict["message"]
    assert "huge values" in verdict["message"], verdict["message"]
