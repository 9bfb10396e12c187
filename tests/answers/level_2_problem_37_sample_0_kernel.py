import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swish_bias_gn_kernel(x_ptr, lin_bias_ptr, bias_ptr, w_ptr, b_ptr, out_ptr, C, eps,
                         GROUPS: tl.constexpr, SIZE: tl.constexpr, GB: tl.constexpr):
    # A program handles GB groups of one row as a (GB, SIZE) tile.
    row = tl.program_id(0)
    g = tl.program_id(1) * GB + tl.arange(0, GB)
    col = g[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    mask = (g < GROUPS)[:, None]
    base = row.to(tl.int64) * C

    x = tl.load(x_ptr + base + col, mask=mask, other=0.0)
    x += tl.load(lin_bias_ptr + col, mask=mask, other=0.0)
    x = x * tl.sigmoid(x)
    x += tl.load(bias_ptr + col, mask=mask, other=0.0)

    mean = tl.sum(x, axis=1) / SIZE
    d = x - mean[:, None]
    var = tl.sum(d * d, axis=1) / SIZE
    rstd = 1.0 / tl.sqrt(var + eps)

    w = tl.load(w_ptr + col, mask=mask, other=0.0)
    b = tl.load(b_ptr + col, mask=mask, other=0.0)
    tl.store(out_ptr + base + col, d * rstd[:, None] * w + b, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, num_groups, bias_shape):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.group_norm = nn.GroupNorm(num_groups, out_features)

    def forward(self, x):
        # cuBLAS for the product, without its bias: the bias goes into the fused kernel.
        y = torch.mm(x, self.matmul.weight.t())
        rows, C = y.shape
        gn = self.group_norm
        size = C // gn.num_groups
        if size & (size - 1):
            y = y + self.matmul.bias
            return gn(torch.nn.functional.silu(y) + self.bias)
        gb = max(1, min(triton.next_power_of_2(gn.num_groups), 4096 // size))
        grid = (rows, triton.cdiv(gn.num_groups, gb))
        swish_bias_gn_kernel[grid](y, self.matmul.bias, self.bias, gn.weight, gn.bias, y, C,
                                   gn.eps, GROUPS=gn.num_groups, SIZE=size, GB=gb, num_warps=8)
        return y
