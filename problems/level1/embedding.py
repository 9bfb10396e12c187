"""Look-up of rows in a table: each index becomes the table's row of that number."""

import torch
import torch.nn as nn

ENTRIES = 8192
FEATURES = 256
BATCH = 32
TOKENS = 512


class Model(nn.Module):
    def __init__(self, entries: int, features: int):
        super().__init__()
        self.table = nn.Embedding(entries, features)

    def forward(self, indices: torch.Tensor) -> torch.Tensor:
        """indices: (BATCH, TOKENS), int64, below ENTRIES. Returns (BATCH, TOKENS, FEATURES)."""
        return self.table(indices)


def get_inputs():
    return [torch.randint(ENTRIES, (BATCH, TOKENS))]


def get_init_inputs():
    return [ENTRIES, FEATURES]
