"""The backward pass of scaled dot-product attention in bfloat16, by cuDNN.

With P = softmax(Q K^T / sqrt(HEAD_DIM)) for each head, and output = P V, the gradients of queries,
keys and values follow from d_output, the gradient of the output:

    dV = P^T dO    dP = dO V^T    dS = P (dP - delta)    dQ = dS K / sqrt(HEAD_DIM)
    delta = the sums of output * dO along its rows       dK = dS^T Q / sqrt(HEAD_DIM)

`output` and `logsumexp` (of the rows of Q K^T / sqrt(HEAD_DIM), by which P is had again) are what
the forward pass saves. With CAUSAL = 1 a query sees no key after it. `causal` is a tensor of 1 +
CAUSAL elements: its length says which of the two is asked for, its values mean nothing.

The gradients are defined for any `output` and `logsumexp`. Those drawn here have the distribution
of a forward pass with such queries and keys, and are drawn instead of computed: every call has
inputs of its own.
"""

import math

import torch
import torch.nn as nn

BATCH = 4
HEADS = 16
LENGTH = 4096
HEAD_DIM = 128
CAUSAL = 0
DTYPE = torch.bfloat16

# cuDNN's kernel is the library from this length on. Below, ragged sizes are checked, not timed.
CUDNN_LENGTH = 1024
ROWS = 1024  # queries at once, where the formula is followed


def by_cudnn(query, key, value, output, d_output, logsumexp, is_causal):
    """The library's backward alone, as autograd calls it."""
    unused = torch.empty((), dtype=torch.int64, device=query.device)  # of dropout
    length = query.shape[2]
    return torch.ops.aten._scaled_dot_product_cudnn_attention_backward(
        d_output,
        query,
        key,
        value,
        output,
        logsumexp.unsqueeze(-1),
        unused,
        unused,
        None,
        None,
        None,
        length,
        length,
        0.0,
        is_causal,
        scale=1 / math.sqrt(query.shape[-1]),
    )


def head_by_formula(query, key, value, output, d_output, logsumexp, is_causal):
    """One head, ROWS queries at a time. All tensors are of one dtype: (LENGTH, HEAD_DIM), and
    (LENGTH) for logsumexp."""
    scale = 1 / math.sqrt(query.shape[-1])
    d_query, d_key, d_value = (torch.zeros_like(tensor) for tensor in (query, key, value))
    place = torch.arange(key.shape[0], device=key.device)
    for begin in range(0, query.shape[0], ROWS):
        rows = slice(begin, begin + ROWS)
        weight = torch.exp(query[rows] @ key.t() * scale - logsumexp[rows, None])
        if is_causal:
            weight = torch.where(place > place[rows, None], torch.zeros_like(weight), weight)
        delta = (output[rows] * d_output[rows]).sum(dim=-1, keepdim=True)
        d_score = weight * (d_output[rows] @ value.t() - delta) * scale
        d_query[rows] = d_score @ key
        d_key += d_score.t() @ query[rows]
        d_value += weight.t() @ d_output[rows]
    return d_query, d_key, d_value


class Model(nn.Module):
    def forward(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        output: torch.Tensor,
        d_output: torch.Tensor,
        logsumexp: torch.Tensor,
        causal: torch.Tensor,
    ):
        """The first five and the three results, the gradients of the first three: (BATCH, HEADS,
        LENGTH, HEAD_DIM). logsumexp: (BATCH, HEADS, LENGTH), float32."""
        is_causal = causal.shape[0] == 2
        given = (query, key, value, output, d_output, logsumexp)
        if query.is_cuda and query.dtype == DTYPE and query.shape[2] >= CUDNN_LENGTH:
            return by_cudnn(*given, is_causal)
        dtype = torch.promote_types(query.dtype, torch.float32)
        heads = zip(*(tensor.to(dtype).flatten(0, 1) for tensor in given))
        results = zip(*(head_by_formula(*head, is_causal) for head in heads))
        return tuple(torch.stack(one).view_as(query).to(query.dtype) for one in results)


def get_inputs():
    shape = (BATCH, HEADS, LENGTH, HEAD_DIM)
    query, key, value, d_output = (torch.randn(shape).to(DTYPE) for _ in range(4))
    # Scores have variance 1. So the sum of a row's exponentials is about sqrt(e) times the number
    # of its keys, and that of the squares of its weights about e by that number.
    keys = torch.arange(1, LENGTH + 1) if CAUSAL else torch.full((LENGTH,), LENGTH)
    output = torch.randn(shape) * torch.sqrt(math.e / (keys + math.e - 1))[:, None]
    noise = torch.sqrt((math.e - 1) / keys + 1 / 256)
    logsumexp = torch.log(keys) + 0.5 + noise * torch.randn(shape[:3])
    causal = torch.zeros(1 + CAUSAL, dtype=torch.bool)
    return [query, key, value, output.to(DTYPE), d_output, logsumexp, causal]


def get_init_inputs():
    return []
