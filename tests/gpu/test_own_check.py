"""Problems with a check of their own, judged on the GPU: the check gets its tensors there."""
import pytest

from conftest import CORRECT, ROOT

PYTHON = """import torch
class ModelNew(torch.nn.Module):
    def __init__(self, *arguments):
        super().__init__()
        self.arguments = arguments
    def forward(self, *inputs):
        return {}
"""
OTHER_ORDER = PYTHON.format(
    "tuple(part.flip(-1) for part in torch.topk(inputs[0], *self.arguments))"
)
SMALLEST = PYTHON.format("tuple(torch.topk(inputs[0], *self.arguments, largest=False))")
ARGMAX = PYTHON.format("inputs[0].argmax(-1, keepdim=True).expand(inputs[1].shape).contiguous()")
OWN_NUMBERS = PYTHON.format(
    "torch.multinomial(torch.softmax(inputs[0], -1), inputs[1].shape[1], True)"
)


def kernel(name):
    return (ROOT / "kernels" / name).read_text()


@pytest.mark.alone
def test_answers_of_any_order_pass_and_wrong_ones_are_told(judge_all):
    radix, other, smallest = judge_all(
        [
            ("radix.cu", kernel("top_k_unordered/radix.cu")),
            ("other_order.py", OTHER_ORDER),
            ("smallest.py", SMALLEST),
        ],
        problem="top_k_unordered",
    )
    for verdict in (radix, other):
        assert verdict["outcome"] in CORRECT, verdict["message"]
        assert verdict["correctness"]["tolerance"] == "check"
        assert verdict["correctness"]["calls_checked"] > 100  # timed calls, too
    assert smallest["outcome"] == "wrong"
    assert "is among the largest, and is not chosen" in smallest["message"]


def test_samples_are_judged_by_their_distribution(judge_all):
    blocks, argmax, own_numbers = judge_all(
        [
            ("blocks.cu", kernel("sample_tokens/blocks.cu")),
            ("argmax.py", ARGMAX),
            ("own_numbers.py", OWN_NUMBERS),
        ],
        problem="sample_tokens",
    )
    assert blocks["outcome"] in CORRECT, blocks["message"]
    assert argmax["outcome"] == "wrong"
    assert "not drawn by their probabilities" in argmax["message"]
    assert own_numbers["outcome"] == "wrong"
    assert "stands for numbers from" in own_numbers["message"]
