import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"BN": 128}, num_warps=4, num_stages=2),
        triton.Config({"BN": 128}, num_warps=8, num_stages=2),
        triton.Config({"BN": 256}, num_warps=8, num_stages=2),
        triton.Config({"BN": 64}, num_warps=4, num_stages=2),
    ],
    key=["HW", "CIN", "COUT"],
)
@triton.jit
def pointwise_kernel(x_ptr, w_ptr, b_ptr, y_ptr, HW, CIN: tl.constexpr, COUT: tl.constexpr,
                     HAS_BIAS: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr,
                     BN: tl.constexpr):
    # y[n, :, hw] = W (COUT x CIN) @ x[n, :, hw], all output channels in one program, so that
    # the input is read once
    pid = tl.program_id(0)
    n = tl.program_id(1).to(tl.int64)
    cols = pid * BN + tl.arange(0, BN)
    oc = tl.arange(0, BM)
    ic = tl.arange(0, BK)
    col_ok = cols < HW

    x_tile = x_ptr + n * CIN * HW + ic[:, None] * HW + cols[None, :]
    w_tile = w_ptr + oc[:, None] * CIN + ic[None, :]
    w = tl.load(w_tile, mask=(oc < COUT)[:, None] & (ic < CIN)[None, :], other=0.0)
    x = tl.load(x_tile, mask=(ic < CIN)[:, None] & col_ok[None, :], other=0.0)
    acc = tl.dot(w, x, allow_tf32=True)
    if HAS_BIAS:
        acc += tl.load(b_ptr + oc, mask=oc < COUT, other=0.0)[:, None]

    y_tile = y_ptr + n * COUT * HW + oc[:, None] * HW + cols[None, :]
    tl.store(y_tile, acc, mask=(oc < COUT)[:, None] & col_ok[None, :])


class ModelNew(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, bias: bool = False):
        super().__init__()
        self.conv1d = nn.Conv2d(in_channels, out_channels, kernel_size=1, stride=1, padding=0,
                                bias=bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        N, cin, H, W = x.shape
        cout = self.conv1d.out_channels
        w = self.conv1d.weight.view(cout, cin)
        b = self.conv1d.bias
        y = torch.empty((N, cout, H, W), device=x.device, dtype=x.dtype)
        HW = H * W
        grid = lambda meta: (triton.cdiv(HW, meta["BN"]), N)
        pointwise_kernel[grid](
            x, w, b if b is not None else w, y, HW, cin, cout, HAS_BIAS=b is not None,
            BM=max(16, triton.next_power_of_2(cout)), BK=max(16, triton.next_power_of_2(cin)))
        return y
