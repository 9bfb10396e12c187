"""The problem of kernels/spec-verify draws tokens as the large model alone would: chi-square."""
import importlib.util

import pytest

from conftest import ROOT

torch = pytest.importorskip("torch")
SEQUENCES = 40000
# With 7 degrees of freedom one seed in 10 million exceeds this.
LIMIT = 45.0


@pytest.fixture(scope="module")
def problem():
    path = ROOT / "kernels" / "spec-verify" / "problem.py"
    spec = importlib.util.spec_from_file_location("spec_verify_problem", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def chi_square(tokens, probabilities):
    counts = torch.bincount(tokens, minlength=len(probabilities)).double()
    expected = probabilities * len(tokens)
    return float(((counts - expected) ** 2 / expected).sum())


@pytest.fixture(scope="module")
def drawn(problem):
    """The logits of one step of two drafted tokens, and what SEQUENCES draws of it give."""
    torch.manual_seed(3)
    target = torch.randn(1, 3, 8)
    draft = target[:, :2] + torch.randn(1, 2, 8)
    q = torch.softmax(draft, dim=-1)
    tokens = torch.stack([torch.multinomial(q[0, i], SEQUENCES, True) for i in range(2)], dim=1)
    noise = 1 / torch.empty(SEQUENCES, 8).exponential_()
    stand, following = problem.Model()(
        target.expand(SEQUENCES, -1, -1),
        draft.expand(SEQUENCES, -1, -1),
        tokens,
        torch.rand(SEQUENCES, 2),
        noise,
    )
    return torch.softmax(target[0].double(), dim=-1), tokens, stand, following


@pytest.mark.parametrize("place", (0, 1, 2))
def test_each_token_is_distributed_as_the_large_models(drawn, place):
    p, tokens, stand, following = drawn
    reached = stand >= place
    at = tokens[:, min(place, 1)]
    token = torch.where(stand > place, at, following)[reached]
    assert len(token) > SEQUENCES / 10
    assert chi_square(token, p[place]) < LIMIT


def test_a_draw_by_p_where_a_token_fell_would_be_noticed(drawn):
    p, tokens, stand, _ = drawn
    wrong = torch.where(stand > 0, tokens[:, 0], torch.multinomial(p[0], SEQUENCES, True).long())
    assert chi_square(wrong, p[0]) > 10 * LIMIT
