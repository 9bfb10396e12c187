"""Products of a mixture of experts in float8 (e4m3), as bytes, with a scale for each block.

Rows of `a` lie expert by expert; `ends` says where each expert's rows end. They meet the expert's
own matrix: C = A B^T, group by group. A byte holds a number of e4m3; 128 neighbours of a row of `a`
share a scale, as do 128 x 128 elements of a matrix of `b`. C is rounded to bfloat16. NaN does not
occur in a and b. Experts without rows do. A PyTorch that has block-scaled products (2.10 and later,
on Hopper) makes one for each expert, else matrices are written out in float32. LIBRARY = 0 leaves
the block-scaled product out.
"""

import torch
import torch.nn as nn
import torch.nn.functional as functional

EXPERTS = 8
ROWS = 16384
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
        ends: torch.Tensor,
    ) -> torch.Tensor:
        """a: (ROWS, INNER), uint8, a_scales: (INNER / 128, ROWS), float32,
        b: (EXPERTS, COLUMNS, INNER), uint8, b_scales: (EXPERTS, COLUMNS / 128, INNER / 128),
        float32, ends: (EXPERTS), int32, the last one ROWS.

        Returns (ROWS, COLUMNS) in bfloat16.
        """
        exact = a_scales.dtype == torch.float64
        library = not exact and has_block_scales(a, a_scales.shape[0])
        product = block_scaled if library else written_out
        out = torch.empty(
            (a.shape[0], b.shape[1]),
            dtype=torch.float64 if exact else torch.bfloat16,
            device=a.device,
        )
        begin = 0
        for expert, end in enumerate(ends_on_host(ends, a.shape[0])):
            if end > begin:
                scales = a_scales[:, begin:end]
                out[begin:end] = product(a[begin:end], scales, b[expert], b_scales[expert])
            begin = end
        return out


def ends_on_host(ends, rows):
    """The ends as a list; even shares where tensors have no values and only work is counted."""
    if not ends.is_meta:
        return ends.tolist()
    return [(expert + 1) * rows // len(ends) for expert in range(len(ends))]


def random_codes(*shape):
    """Every e4m3 number is as likely as any other; NaN does not occur."""
    codes = torch.randint(254, shape, dtype=torch.uint8)
    return codes + (codes >= NAN_CODES[0])


def random_scales(*shape):
    return (0.5 + torch.rand(shape)) / BLOCK


def random_ends():
    """Each row goes to one of all experts but one, which gets none where there are others."""
    chosen = torch.randint(max(EXPERTS - 1, 1), (ROWS,))
    idle = torch.randint(EXPERTS, ())
    if EXPERTS > 1:
        chosen = chosen + (chosen >= idle)
    counts = (chosen[:, None] == torch.arange(EXPERTS)).sum(dim=0)
    return counts.cumsum(0).to(torch.int32)


def get_inputs():
    inner, columns = INNER_BLOCKS * BLOCK, COLUMN_BLOCKS * BLOCK
    return [
        random_codes(ROWS, inner),
        random_scales(INNER_BLOCKS, ROWS),
        random_codes(EXPERTS, columns, inner),
        random_scales(EXPERTS, COLUMN_BLOCKS, INNER_BLOCKS),
        random_ends(),
    ]


def get_init_inputs():
    return []
