"""A Llama-like model with random weights: tokens in, logits of the last one out.

ROWS tokens follow CONTEXT tokens, of which the cache has keys and values. With ROWS = 1 it is a
step of decoding; with CONTEXT = 0 a prompt is read, and there is no cache. The sizes are those of
Llama 3.2 1B; BITS = 32 makes it a model in float32, for CPUs.
With TRACE = 1 the sums after each layer are results, too, so that errors show layer by layer. The
functions rms_norm, rotate, attend, swiglu and linear are the places at which `assay model` swaps
kernels.
"""

import math

import torch
import torch.nn as nn
import torch.nn.functional as functional

ROWS = 1
CONTEXT = 512
LAYERS = 16
HIDDEN = 2048
HEADS = 32
KV_HEADS = 8
HEAD_DIM = 64
FEED_FORWARD = 8192
VOCABULARY = 128256
BITS = 16
TRACE = 0

DTYPE = torch.bfloat16 if BITS == 16 else torch.float32
EPSILON = 1e-5
THETA = 500000.0
POOL = 1000003  # a prime, so that no two rows of weights are equal
# Tokens have a deviation of 1, and what layers add is smaller. Of smaller tokens the first layers'
# results would be the whole of the sums, with all of their rounding: in bfloat16 16 layers would be
# off by more than the judge lets a reference be.
ADDED = 0.7


class Weights:
    """Random weights that are made fast: each matrix is a stretch of one pool of normal numbers."""

    def __init__(self):
        self.pool = torch.randn(POOL)
        self.used = 0

    def take(self, *shape: int, mean: float = 0.0, std: float = 1.0) -> nn.Parameter:
        count = math.prod(shape)
        first = self.used % POOL
        self.used += count
        repeats = (first + count + POOL - 1) // POOL
        values = (self.pool * std + mean).to(DTYPE).repeat(repeats)[first : first + count]
        return nn.Parameter(values.clone().view(shape), requires_grad=False)


def rms_norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    if hasattr(functional, "rms_norm"):
        return functional.rms_norm(x, weight.shape, weight, EPSILON)
    # PyTorch before 2.4
    return x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + EPSILON) * weight


def rotate(x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
    """x: (ROWS, heads, HEAD_DIM). Elements i and i + HEAD_DIM / 2 are turned by one angle."""
    a, b = x.chunk(2, dim=-1)
    cosine, sine = cosine[:, None, :], sine[:, None, :]
    return torch.cat([a * cosine - b * sine, b * cosine + a * sine], dim=-1).to(x.dtype)


def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """query: (ROWS, HEADS, HEAD_DIM), key and value: (CONTEXT + ROWS, KV_HEADS, HEAD_DIM).

    A row sees the tokens before it, and itself. Returns the shape of query.
    """
    rows, heads, width = query.shape
    length, kv_heads, _ = key.shape
    key, value = key.transpose(0, 1), value.transpose(0, 1)
    if rows == 1:
        # The heads of a group are the rows of one product.
        query = query.view(kv_heads, heads // kv_heads, width)
        seen = None
    else:
        query = query.transpose(0, 1)
        key = key.repeat_interleave(heads // kv_heads, dim=0)
        value = value.repeat_interleave(heads // kv_heads, dim=0)
        seen = torch.ones(rows, length, dtype=torch.bool, device=query.device).tril(length - rows)
    if hasattr(functional, "scaled_dot_product_attention"):
        if rows == length:
            out = functional.scaled_dot_product_attention(
                query[None], key[None], value[None], is_causal=rows > 1
            )[0]
        else:
            out = functional.scaled_dot_product_attention(
                query[None], key[None], value[None], attn_mask=seen
            )[0]
    else:
        scores = torch.matmul(query, key.transpose(1, 2)) / math.sqrt(width)
        if seen is not None:
            scores = scores.masked_fill(~seen, -math.inf)
        out = torch.matmul(torch.softmax(scores, dim=-1), value)
    return out.reshape(rows, heads, width) if rows == 1 else out.transpose(0, 1)


def swiglu(x: torch.Tensor, gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """x: (ROWS, HIDDEN), gate and up: (FEED_FORWARD, HIDDEN). Returns (ROWS, FEED_FORWARD)."""
    return functional.silu(functional.linear(x, gate)) * functional.linear(x, up)


def linear(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return functional.linear(x, weight)


class Layer(nn.Module):
    def __init__(self, weights: Weights):
        super().__init__()
        heads = (HEADS + 2 * KV_HEADS) * HEAD_DIM
        self.attention_norm = weights.take(HIDDEN, mean=1.0, std=0.2)
        self.qkv = weights.take(heads, HIDDEN, std=HIDDEN**-0.5)
        width = HEADS * HEAD_DIM
        self.project = weights.take(HIDDEN, width, std=ADDED * width**-0.5)
        self.feed_forward_norm = weights.take(HIDDEN, mean=1.0, std=0.2)
        self.gate = weights.take(FEED_FORWARD, HIDDEN, std=HIDDEN**-0.5)
        self.up = weights.take(FEED_FORWARD, HIDDEN, std=HIDDEN**-0.5)
        self.down = weights.take(HIDDEN, FEED_FORWARD, std=ADDED * FEED_FORWARD**-0.5)

    def attention(self, x, cosine, sine, cache):
        qkv = linear(x, self.qkv).view(x.shape[0], -1, HEAD_DIM)
        query, key, value = qkv.split([HEADS, KV_HEADS, KV_HEADS], dim=1)
        query, key = rotate(query, cosine, sine), rotate(key, cosine, sine)
        if cache is not None:
            key, value = torch.cat([cache[0], key]), torch.cat([cache[1], value])
        mixed = attend(query, key, value).reshape(x.shape[0], -1)
        return linear(mixed, self.project)

    def forward(self, x, cosine, sine, cache):
        x = x + self.attention(rms_norm(x, self.attention_norm), cosine, sine, cache)
        gated = swiglu(rms_norm(x, self.feed_forward_norm), self.gate, self.up)
        return x + linear(gated, self.down)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        weights = Weights()
        self.embedding = weights.take(VOCABULARY, HIDDEN)
        self.norm = weights.take(HIDDEN, mean=1.0, std=0.2)
        position = torch.arange(CONTEXT, CONTEXT + ROWS, dtype=torch.float64)
        frequency = THETA ** (torch.arange(HEAD_DIM // 2, dtype=torch.float64) * -2 / HEAD_DIM)
        angle = torch.outer(position, frequency)
        self.register_buffer("cosine", angle.cos().float())
        self.register_buffer("sine", angle.sin().float())
        self.layers = nn.ModuleList([Layer(weights) for _ in range(LAYERS)])

    def forward(self, tokens: torch.Tensor, keys=(), values=()):
        """tokens: (ROWS), int64; keys and values: of each layer (CONTEXT, KV_HEADS, HEAD_DIM),
        turned by their positions already; none where CONTEXT = 0. Returns (1, VOCABULARY).
        """
        x = self.embedding[tokens]
        sums = []
        for number, layer in enumerate(self.layers):
            cache = (keys[number], values[number]) if len(keys) > 0 else None
            x = layer(x, self.cosine, self.sine, cache)
            sums.append(x)
        logits = linear(rms_norm(x[-1:], self.norm), self.embedding)
        return (logits, sums) if TRACE else logits


def get_inputs():
    tokens = torch.randint(VOCABULARY, (ROWS,))
    if CONTEXT == 0:
        return [tokens]
    shape = (CONTEXT, KV_HEADS, HEAD_DIM)
    caches = [[torch.randn(shape).to(DTYPE) for _ in range(LAYERS)] for _ in range(2)]
    return [tokens, *caches]


def get_init_inputs():
    return []
