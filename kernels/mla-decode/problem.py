"""One step of decoding with multi-head latent attention, over a paged cache, in bfloat16.

All HEADS heads of a sequence's query attend to one row a token: a latent of LATENT numbers, which
is key and value, and ROPE numbers of position, which are key alone. The projections of keys and
values are absorbed into those of queries and outputs, which stand outside of this problem; scores
are divided by the root of the width that keys have without that, NOPE + ROPE.

The cache is a pool of pages of PAGE tokens; a sequence's row of the table names its pages, in
order. The pool has no spare room but one page. Memory that no sequence uses (that page, the ends of
last pages) holds NaN, and the table's entries behind a sequence's last page name no page: whoever
reads on, notices. A sequence without tokens gives zeros.
"""

import math

import torch
import torch.nn as nn

BATCH = 128
LONGEST = 4096
STEP = 0
HEADS = 16
LATENT = 512
ROPE = 64
NOPE = 128
PAGE = 64
DTYPE = torch.bfloat16
NO_PAGE = 2147480000


class Model(nn.Module):
    def forward(
        self,
        q: torch.Tensor,
        cache: torch.Tensor,
        page_table: torch.Tensor,
        lengths: torch.Tensor,
    ) -> torch.Tensor:
        """q: (BATCH, HEADS, LATENT + ROPE), cache: (pages, PAGE, LATENT + ROPE), page_table:
        (BATCH, pages of the longest), int32, lengths: (BATCH), int32.

        Returns (BATCH, HEADS, LATENT).
        """
        pages, page, _ = cache.shape
        token = torch.arange(page_table.shape[1] * page, device=q.device)
        seen = token < lengths[:, None]
        # Unused places take the sequence's first token, which is a number, and are masked.
        token = torch.where(seen, token, torch.zeros_like(token))
        number = torch.gather(page_table.long(), 1, token // page).clamp(max=pages - 1)
        keys = cache.flatten(0, 1)[number * page + token % page]
        scores = torch.matmul(q, keys.transpose(1, 2)) / math.sqrt(NOPE + ROPE)
        weights = torch.softmax(scores.masked_fill(~seen[:, None, :], -math.inf), dim=-1)
        out = torch.matmul(weights, keys[:, :, :LATENT])
        return torch.where(lengths[:, None, None] > 0, out, torch.zeros_like(out))


def lengths_of_a_batch():
    """LONGEST, and STEP less from each to the next; in every draw the same, in another order."""
    return [max(LONGEST - STEP * i, 0) for i in range(BATCH)]


def get_inputs():
    pages = sum((length + PAGE - 1) // PAGE for length in lengths_of_a_batch()) + 1
    lengths = torch.tensor(lengths_of_a_batch())[torch.randperm(BATCH)]
    # Which pages of the pool a sequence has: the next ones of a random order.
    counts = (lengths + PAGE - 1) // PAGE
    number = torch.arange(max((LONGEST + PAGE - 1) // PAGE, 1))
    used = number < counts[:, None]
    place = ((counts.cumsum(0) - counts)[:, None] + number).clamp(max=pages - 1)
    table = torch.where(used, torch.randperm(pages)[place], torch.full_like(place, NO_PAGE))
    # How many tokens each page holds.
    tokens = (lengths[:, None] - number * PAGE).clamp(0, PAGE)
    held = torch.zeros(pages + 1, dtype=torch.long)
    held = held.scatter(0, table.clamp(max=pages).flatten(), tokens.flatten())[:pages]
    unused = (torch.arange(PAGE) >= held[:, None])[:, :, None]
    cache = torch.randn(pages, PAGE, LATENT + ROPE).to(DTYPE).masked_fill_(unused, math.nan)
    q = torch.randn(BATCH, HEADS, LATENT + ROPE).to(DTYPE)
    return [q, cache, table.int(), lengths.int()]


def get_init_inputs():
    return []
