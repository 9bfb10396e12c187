"""One step of decoding over a paged cache of float8 (e4m3): keys and values as bytes.

As in paged-decode: KV_HEADS heads of keys and values serve GROUP heads of queries each, and the
cache is a pool of pages of PAGE tokens, named by a table. Here a key or value is a byte, a number
of e4m3 (a sign, four bits of exponent, three of mantissa), times a float32 scale of its head. So
the problem is the same for a PyTorch without float8. Numbers in use are never NaN. Memory that no
sequence uses (one page, the ends of last pages) holds NaN, and the table's entries behind a
sequence's last page name no page: whoever reads on, notices. A sequence without tokens gives zeros.
"""

import math

import torch
import torch.nn as nn
import torch.nn.functional as functional

BATCH = 32
LONGEST = 4096
STEP = 0
KV_HEADS = 8
GROUP = 4
HEAD_DIM = 128
PAGE = 16
DTYPE = torch.bfloat16
NO_PAGE = 2147480000
NAN_CODES = (127, 255)
# Numbers of e4m3, each as likely as any other, have a deviation of about 96.
USUAL_SCALE = 1 / 128


def numbers_of(codes, dtype):
    """The numbers that bytes hold."""
    if hasattr(torch, "float8_e4m3fn"):
        return codes.view(torch.float8_e4m3fn).to(dtype)
    numbers = []
    for code in range(256):
        exponent, mantissa = code >> 3 & 15, code & 7
        size = (mantissa + 8) * 2.0 ** (exponent - 10) if exponent > 0 else mantissa * 2.0**-9
        numbers.append(-size if code >= 128 else size)
    return torch.tensor(numbers, dtype=dtype, device=codes.device)[codes.long()]


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
        k_scales: torch.Tensor,
        v_scales: torch.Tensor,
        page_table: torch.Tensor,
        lengths: torch.Tensor,
    ) -> torch.Tensor:
        """q: (BATCH, HEADS, HEAD_DIM), k_cache and v_cache: (pages, PAGE, KV_HEADS, HEAD_DIM),
        uint8, k_scales and v_scales: (KV_HEADS), float32, page_table: (BATCH, pages of the
        longest), int32, lengths: (BATCH), int32.

        Returns the shape of q. Bytes are gathered first, and become numbers of q's dtype then. The
        heads of a group are the queries of one attention, so that keys and values are read once for
        all of them.
        """
        batch, heads, head_dim = q.shape
        pages, page, kv_heads, _ = k_cache.shape
        token = torch.arange(page_table.shape[1] * page, device=q.device)
        seen = token < lengths[:, None]
        # Unused places take the sequence's first token, which is a number, and are masked.
        token = torch.where(seen, token, torch.zeros_like(token))
        number = torch.gather(page_table.long(), 1, token // page).clamp(max=pages - 1)
        place = number * page + token % page

        def gathered(cache, scales):
            numbers = numbers_of(cache.flatten(0, 1)[place], q.dtype)
            return (numbers * scales.to(q.dtype)[:, None]).transpose(1, 2)

        query = q.view(batch, kv_heads, heads // kv_heads, head_dim)
        key, value = gathered(k_cache, k_scales), gathered(v_cache, v_scales)
        out = attention(query, key, value, seen[:, None, None, :]).reshape(q.shape)
        return torch.where(lengths[:, None, None] > 0, out, torch.zeros_like(out))


def lengths_of_a_batch():
    """LONGEST, and STEP less from each to the next; in every draw the same, in another order."""
    return [max(LONGEST - STEP * i, 0) for i in range(BATCH)]


def random_codes(*shape):
    """Every e4m3 number is as likely as any other; NaN does not occur."""
    codes = torch.randint(254, shape, dtype=torch.uint8)
    return codes + (codes >= NAN_CODES[0])


def random_scales(*shape):
    return (0.5 + torch.rand(shape)) * USUAL_SCALE


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
    caches = [random_codes(*shape).masked_fill_(unused, NAN_CODES[0]) for _ in range(2)]
    scales = [random_scales(KV_HEADS) for _ in range(2)]
    q = torch.randn(BATCH, KV_HEADS * GROUP, HEAD_DIM).to(DTYPE)
    return [q, *caches, *scales, table.int(), lengths.int()]


def get_init_inputs():
    return []
