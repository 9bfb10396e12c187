"""The COUNT largest elements of each row and their positions, in any order; of equal elements any.

This is the cut that sparse attention and samplers make: they need the chosen set, not its order. A
NaN counts as larger than every number. Many answers are right, so the file has a check of its own.
"""

import torch
import torch.nn as nn

ROWS = 512
COLUMNS = 1024
COUNT = 16


class Model(nn.Module):
    def __init__(self, count: int):
        super().__init__()
        self.count = count

    def forward(self, x: torch.Tensor):
        """x: (ROWS, COLUMNS). Returns the values, and their positions as int64, (ROWS, COUNT)
        each.
        """
        return tuple(torch.topk(x, self.count, dim=-1, sorted=False))


def same(a, b):
    return (a == b) | (torch.isnan(a) & torch.isnan(b))


def first(wrong):
    """Returns the row and the column of the first True."""
    return divmod(int(wrong.flatten().to(torch.uint8).argmax()), wrong.shape[1])


def check(inputs, outputs):
    (x,) = inputs
    values, positions = outputs
    outside = (positions < 0) | (positions >= x.shape[1])
    if outside.any():
        row, place = first(outside)
        return f"row {row}: position {int(positions[row, place])} lies outside of the row"
    ordered = torch.sort(positions, dim=-1).values
    twice = ordered[:, 1:] == ordered[:, :-1]
    if twice.any():
        row, place = first(twice)
        return f"row {row}: position {int(ordered[row, place])} stands twice"
    chosen = x.gather(1, positions)
    wrong = ~same(values, chosen)
    if wrong.any():
        row, place = first(wrong)
        return (
            f"row {row}: value {float(values[row, place]):.6g} stands beside position "
            f"{int(positions[row, place])}, where {float(chosen[row, place]):.6g} is"
        )
    best = torch.topk(x, values.shape[1], dim=-1).values
    wrong = ~same(torch.sort(chosen, dim=-1, descending=True).values, best)
    if wrong.any():
        row, place = first(wrong)
        return f"row {row}: {float(best[row, place]):.6g} is among the largest, and is not chosen"
    return None


def get_inputs():
    # Rounded, so that the cut often goes through equal elements; rows of different means.
    return [(16 * (torch.randn(ROWS, COLUMNS) + torch.randn(ROWS, 1))).round() / 16]


def get_init_inputs():
    return [COUNT]
