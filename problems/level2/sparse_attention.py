"""One step of decoding with sparse attention over a paged cache: an indexer scores all tokens, and
attention runs on the TOP best alone.

A token's score is the sum over the INDEX_HEADS heads of the indexer of weight * relu(query * key).
Its numbers are whole and below 64 in size, so that a score of up to 64 heads of 128 numbers is the
same in any order of its sums, and fits into 32 bits. The TOP tokens with the largest scores are
chosen; of equal ones, and there are some, the earlier. A sequence of no more than TOP tokens
chooses all.

Attention is latent attention: all HEADS heads of the query attend to one row a token, a latent of
LATENT numbers, which is key and value, and ROPE numbers of position, which are key alone. Scores
are divided by the root of the width that keys have without absorbed projections, NOPE + ROPE.

Both caches are pools of pages of PAGE tokens; a sequence's row of the table names its pages, in
order. The pool has no spare room but one page. Memory that no sequence uses holds NaN in the cache
and numbers in the indexer's, and the table's entries behind a sequence's last page name no page:
whoever reads on, notices. A sequence without tokens gives zeros.
"""

import math

import torch
import torch.nn as nn

BATCH = 4
LONGEST = 300
STEP = 60
HEADS = 8
LATENT = 128
ROPE = 32
NOPE = 64
INDEX_HEADS = 8
INDEX_DIM = 32
TOP = 64
PAGE = 16
NO_PAGE = 2147480000


class Model(nn.Module):
    def __init__(self, top: int):
        super().__init__()
        self.top = top

    def forward(
        self,
        q: torch.Tensor,
        cache: torch.Tensor,
        index_q: torch.Tensor,
        index_weights: torch.Tensor,
        index_keys: torch.Tensor,
        page_table: torch.Tensor,
        lengths: torch.Tensor,
    ):
        """q: (BATCH, HEADS, LATENT + ROPE), cache: (pages, PAGE, LATENT + ROPE), index_q: (BATCH,
        INDEX_HEADS, INDEX_DIM), index_weights: (BATCH, INDEX_HEADS), index_keys: (pages, PAGE,
        INDEX_DIM), these three int8, page_table: (BATCH, pages of the longest), int32, lengths:
        (BATCH), int32.

        Returns (BATCH, HEADS, LATENT), and the chosen tokens: (BATCH, TOP), int64, in ascending
        order, then -1.
        """
        pages, page, _ = cache.shape
        tokens = page_table.shape[1] * page
        token = torch.arange(tokens, device=q.device)
        seen = token < lengths[:, None]
        # Unused places take the sequence's first token, and are masked.
        used = torch.where(seen, token, torch.zeros_like(token))
        number = torch.gather(page_table.long(), 1, used // page).clamp(max=pages - 1)
        row = number * page + used % page

        keys = index_keys.flatten(0, 1)[row]
        dots = torch.matmul(index_q.float(), keys.float().transpose(1, 2))
        score = (torch.relu(dots).int() * index_weights.int()[:, :, None]).sum(dim=1)
        # The larger number is of the larger score, then of the earlier token.
        ordered = torch.where(seen, score * tokens - token, torch.full_like(score, -(2**62)))
        best = torch.topk(ordered, min(self.top, tokens), dim=-1, sorted=False).values
        chosen = torch.where(best > -(2**62), (-best) % tokens, torch.full_like(best, tokens))
        chosen = nn.functional.pad(chosen, (0, max(self.top - tokens, 0)), value=tokens)
        chosen = torch.sort(chosen, dim=-1).values
        there = chosen < tokens

        place = torch.where(there, chosen, torch.zeros_like(chosen))
        rows = cache.flatten(0, 1)[torch.gather(row, 1, place)]
        scores = torch.matmul(q, rows.transpose(1, 2)) / math.sqrt(NOPE + ROPE)
        weights = torch.softmax(scores.masked_fill(~there[:, None, :], -math.inf), dim=-1)
        out = torch.matmul(weights, rows[:, :, :LATENT])
        out = torch.where(lengths[:, None, None] > 0, out, torch.zeros_like(out))
        return out, torch.where(there, chosen, torch.full_like(chosen, -1))


def lengths_of_a_batch():
    """LONGEST, and STEP less from each to the next; in every draw the same, in another order."""
    return [max(LONGEST - STEP * i, 0) for i in range(BATCH)]


def whole_numbers(*shape):
    """Normal ones with a deviation of 4, rounded."""
    return (4 * torch.randn(*shape)).round().clamp(-63, 63)


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
    cache = torch.randn(pages, PAGE, LATENT + ROPE).masked_fill_(unused, math.nan)
    q = torch.randn(BATCH, HEADS, LATENT + ROPE)
    # Some sequences have small queries, so that many scores are equal.
    size = torch.tensor([0.25, 1.0, 4.0])[torch.randint(0, 3, (BATCH, 1, 1))]
    index_q = (size * whole_numbers(BATCH, INDEX_HEADS, INDEX_DIM)).round().clamp(-63, 63)
    index_weights = whole_numbers(BATCH, INDEX_HEADS)
    index_keys = whole_numbers(pages, PAGE, INDEX_DIM)
    whole = [x.to(torch.int8) for x in (index_q, index_weights, index_keys)]
    return [q, cache, *whole, table.int(), lengths.int()]


def get_init_inputs():
    return [TOP]
