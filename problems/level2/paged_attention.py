"""One step of decoding: attention of one query a sequence over a paged cache.

KV_HEADS heads of keys and values serve GROUP heads of queries each. The cache is a pool of pages of
PAGE tokens; a sequence's row of the table names its pages, in order. The pool has no spare room
but one page. Memory that no sequence uses (that page, the ends of last pages) holds NaN, and the
table's entries behind a sequence's last page name no page: whoever reads on, notices.
A sequence without tokens gives zeros.
"""

import math

import torch
import torch.nn as nn
import torch.nn.functional as functional

BATCH = 8
LONGEST = 512
STEP = 60
KV_HEADS = 4
GROUP = 4
HEAD_DIM = 64
PAGE = 16
NO_PAGE = 2147480000


def attention(query, key, value, seen):
    """softmax(Q K^T / sqrt(HEAD_DIM)) V over the tokens that are seen."""
    if hasattr(functional, "scaled_dot_product_attention"):
        return functional.scaled_dot_product_attention(query, key, value, attn_mask=seen)
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores.masked_fill(~seen, -math.inf), dim=-1)
    return torch.matmul(weights, value)


class Model(nn.Module):
    def forward(
        self,
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        page_table: torch.Tensor,
        lengths: torch.Tensor,
    ) -> torch.Tensor:
        """q: (BATCH, HEADS, HEAD_DIM), k_cache and v_cache: (pages, PAGE, KV_HEADS, HEAD_DIM),
        page_table: (BATCH, pages of the longest), int32, lengths: (BATCH), int32.

        Returns the shape of q. The heads of a group are the queries of one attention, so that keys
        and values are read once for all of them.
        """
        batch, heads, head_dim = q.shape
        pages, page, kv_heads, _ = k_cache.shape
        token = torch.arange(page_table.shape[1] * page, device=q.device)
        seen = token < lengths[:, None]
        # Unused places take the sequence's first token, which is a number, and are masked.
        token = torch.where(seen, token, torch.zeros_like(token))
        number = torch.gather(page_table.long(), 1, token // page).clamp(max=pages - 1)
        place = number * page + token % page
        key = k_cache.flatten(0, 1)[place].transpose(1, 2)
        value = v_cache.flatten(0, 1)[place].transpose(1, 2)
        query = q.view(batch, kv_heads, heads // kv_heads, head_dim)
        out = attention(query, key, value, seen[:, None, None, :]).reshape(q.shape)
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
    unused = (torch.arange(PAGE) >= held[:, None])[:, :, None, None]
    shape = (pages, PAGE, KV_HEADS, HEAD_DIM)
    caches = [torch.randn(shape).masked_fill_(unused, math.nan) for _ in range(2)]
    q = torch.randn(BATCH, KV_HEADS * GROUP, HEAD_DIM)
    return [q, *caches, table.int(), lengths.int()]


def get_init_inputs():
    return []
