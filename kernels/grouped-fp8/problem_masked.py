"""Products of a mixture of experts in float8 (e4m3), as bytes, with a scale for each block.

Each expert has room for MOST rows, of which it has as many as `counts` says: C = A B^T, expert by
expert, and rows of C that an expert does not have are zeros. A byte holds a number of e4m3; 128
neighbours of a row of `a` share a scale, as do 128 x 128 elements of a matrix of `b`. C is rounded
to bfloat16. Rows that an expert does not have hold NaN, as do their scales: whoever reads on,
notices. A PyTorch that has block-scaled products (2.10 and later, on Hopper) makes one for each
expert, else matrices are written out in float32. LIBRARY = 0 leaves the block-scaled product out.
"""

import torch
import torch.nn as nn
import torch.nn.functional as functional

EXPERTS = 16
MOST = 64
MEAN = 20
INNER_BLOCKS = 56
COLUMN_BLOCKS = 32
LIBRARY = 1
BLOCK = 128
NAN_CODES = (127, 255)


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


def has_block_scales(a, inner_blocks):
    """True if PyTorch's block-scaled product takes these sizes."""
    return (
        LIBRARY == 1
        and a.is_cuda
        and hasattr(functional, "scaled_mm")
        and torch.cuda.get_device_capability(a.device) == (9, 0)
        and inner_blocks % 4 == 0
    )


def block_scaled(a, a_scales, b, b_scales):
    """The product of one expert, with rows of zeros until they are a multiple of 16."""
    rows = a.shape[0]
    kinds = functional.ScalingType
    more = -rows % 16
    if more > 0:
        a, a_scales = functional.pad(a, (0, 0, 0, more)), functional.pad(a_scales, (0, more))
    return functional.scaled_mm(
        a.view(torch.float8_e4m3fn),
        b.view(torch.float8_e4m3fn).t(),
        a_scales.contiguous().t(),
        kinds.BlockWise1x128,
        b_scales.t(),
        kinds.BlockWise128x128,
        output_dtype=torch.bfloat16,
    )[:rows]


def written_out(a, a_scales, b, b_scales):
    """The product of one expert in the scales' dtype."""
    rows, inner = a.shape
    columns = b.shape[0]
    blocks = inner // BLOCK
    a = numbers_of(a, a_scales.dtype).view(rows, blocks, BLOCK) * a_scales.t().unsqueeze(-1)
    b = numbers_of(b, b_scales.dtype).view(-1, BLOCK, blocks, BLOCK) * b_scales[:, None, :, None]
    return functional.linear(a.reshape(rows, inner), b.reshape(columns, inner))


class Model(nn.Module):
    def forward(
        self,
        a: torch.Tensor,
        a_scales: torch.Tensor,
        b: torch.Tensor,
        b_scales: torch.Tensor,
        counts: torch.Tensor,
    ) -> torch.Tensor:
        """a: (EXPERTS, MOST, INNER), uint8, a_scales: (EXPERTS, INNER / 128, MOST), float32,
        b: (EXPERTS, COLUMNS, INNER), uint8, b_scales: (EXPERTS, COLUMNS / 128, INNER / 128),
        float32, counts: (EXPERTS), int32, at most MOST.

        Returns (EXPERTS, MOST, COLUMNS) in bfloat16.
        """
        exact = a_scales.dtype == torch.float64
        library = not exact and has_block_scales(a, a_scales.shape[1])
        product = block_scaled if library else written_out
        out = torch.zeros(
            (a.shape[0], a.shape[1], b.shape[1]),
            dtype=torch.float64 if exact else torch.bfloat16,
            device=a.device,
        )
        for expert, count in enumerate(counts_on_host(counts, a.shape[1])):
            if count > 0:
                scales = a_scales[expert, :, :count]
                rows = product(a[expert, :count], scales, b[expert], b_scales[expert])
                out[expert, :count] = rows
        return out


def counts_on_host(counts, most):
    """The counts as a list; MEAN where tensors have no values and only work is counted."""
    return [min(MEAN, most)] * len(counts) if counts.is_meta else counts.tolist()


def random_codes(*shape):
    """Every e4m3 number is as likely as any other; NaN does not occur."""
    codes = torch.randint(254, shape, dtype=torch.uint8)
    return codes + (codes >= NAN_CODES[0])


def random_scales(*shape):
    return (0.5 + torch.rand(shape)) / BLOCK


def get_inputs():
    inner, columns = INNER_BLOCKS * BLOCK, COLUMN_BLOCKS * BLOCK
    counts = torch.randint(2 * MEAN + 1, (EXPERTS,)).clamp(max=MOST)
    unused = torch.arange(MOST) >= counts[:, None]
    a, a_scales = random_codes(EXPERTS, MOST, inner), random_scales(EXPERTS, INNER_BLOCKS, MOST)
    return [
        a.masked_fill(unused[:, :, None], NAN_CODES[0]),
        a_scales.masked_fill(unused[:, None, :], float("nan")),
        random_codes(EXPERTS, columns, inner),
        random_scales(EXPERTS, COLUMN_BLOCKS, INNER_BLOCKS),
        counts.to(torch.int32),
    ]


def get_init_inputs():
    return []
