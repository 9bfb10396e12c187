"""How often rounding alone chooses in a softmax that is steep enough to be a choice, and how well
nudges of the inputs show it: what the constants of src/rules/moved_elements.h rest on.

One query a row, float32, against SEQUENCE keys of FEATURES numbers, all of N(0, 1), as an
attention has them on a draw of huge values, whose softmax takes the largest score. As JSON lines:

- `chance`: that a program (scores summed one by one, or PyTorch's) chooses another key than
  float64 does, in a row: the density of gaps between the two largest scores near 0, times half the
  mean error of that gap. Such rows are too rare to be counted.
- `shown`: of rows whose two largest scores were put next to each other (the second key was moved
  until float32 cannot tell them apart), and in which the sums one by one choose otherwise, the
  share in which one of N nudges of relative size 2^-BITS does so, too.

Needs a Python with PyTorch. Usage: near_ties.py [SEED]
"""

import json
import sys

import torch

SHAPES = ((129, 32), (512, 64), (4096, 128))
ROWS, ROUNDS = 2048, 8
BITS = (24, 22, 20, 18, 16)
NUDGES = (1, 2, 4, 8)
NEAR = 0.02  # gaps below this share of a score's deviation are uniform


def scores_one_by_one(query, keys):
    total = torch.zeros(keys.shape[:2])
    for i in range(query.shape[1]):
        total = total + query[:, i : i + 1] * keys[..., i]
    return total


def scores(query, keys):
    return torch.matmul(keys, query.unsqueeze(-1)).squeeze(-1)


def two_largest(query, keys):
    return scores(query.double(), keys.double()).topk(2, -1)


def gap_of(values, index):
    chosen = values.double().gather(-1, index)
    return chosen[:, 0] - chosen[:, 1]


def nudged(tensor, bits):
    share = 2 * torch.rand(tensor.shape, dtype=torch.float64) - 1
    return (tensor.double() * (1 + 2.0**-bits * share)).float()


def put_side_by_side(query, keys):
    """The second key of each row moves along the query until the two scores are the same."""
    top, index = two_largest(query, keys)
    step = (top[:, 0] - top[:, 1]) / query.double().square().sum(-1)
    rows = torch.arange(len(query))
    moved = keys[rows, index[:, 1]].double() + step[:, None] * query.double()
    keys[rows, index[:, 1]] = moved.float()
    return index


def chances(sequence, features, rows):
    gaps, errors = [], {"one by one": [], "torch": []}
    for _ in range(ROUNDS):
        query, keys = torch.randn(rows, features), torch.randn(rows, sequence, features)
        top, index = two_largest(query, keys)
        scale = features**0.5
        gaps.append((top[:, 0] - top[:, 1]) / scale)
        for name, score in (("one by one", scores_one_by_one), ("torch", scores)):
            gap = gap_of(score(query, keys), index)
            errors[name].append((gap - top[:, 0] + top[:, 1]).abs() / scale)
    density = (torch.cat(gaps) < NEAR).double().mean().item() / NEAR
    return {
        name: float(f"{density * torch.cat(error).mean().item() / 2:.3g}")
        for name, error in errors.items()
    }


def shares(features, rows):
    """Of a few keys: the others are not near."""
    otherwise, shown = 0, {bits: torch.zeros(max(NUDGES) + 1) for bits in BITS}
    for _ in range(ROUNDS):
        query, keys = torch.randn(rows, features), torch.randn(rows, 16, features)
        index = put_side_by_side(query, keys)
        truth = gap_of(scores(query.double(), keys.double()), index) > 0
        wrong = (gap_of(scores_one_by_one(query, keys), index) > 0) != truth
        otherwise += int(wrong.sum())
        for bits in BITS:
            seen = torch.zeros(rows, dtype=torch.bool)
            for nudge in range(1, max(NUDGES) + 1):
                other = nudged(query, bits).double(), nudged(keys, bits).double()
                seen |= (gap_of(scores(*other), index) > 0) != truth
                shown[bits][nudge] += (seen & wrong).sum()
    return otherwise, {
        bits: {n: round(counts[n].item() / otherwise, 4) for n in NUDGES}
        for bits, counts in shown.items()
    }


def main():
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    torch.manual_seed(seed)
    print(json.dumps({"seed": seed, "torch": torch.__version__}))
    for sequence, features in SHAPES:
        rows = max(64, min(ROWS, ROWS * 129 * 32 // (sequence * features)))
        chance = chances(sequence, features, rows)
        line = {"sequence": sequence, "features": features, "rows": rows * ROUNDS}
        print(json.dumps({**line, "chance": chance}), flush=True)
    for _, features in (*SHAPES, (0, 4096)):
        rows = max(64, min(ROWS, ROWS * 128 // features))
        otherwise, shown = shares(features, rows)
        line = {"features": features, "rows": rows * ROUNDS, "otherwise": otherwise}
        print(json.dumps({**line, "shown": shown}), flush=True)


if __name__ == "__main__":
    main()
