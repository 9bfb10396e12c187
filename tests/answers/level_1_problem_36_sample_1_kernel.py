import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rms_norm_kernel(
    x_ptr, y_ptr, C, HW, eps,
    BLOCK_C: tl.constexpr, BLOCK_P: tl.constexpr,
):
    pid_p = tl.program_id(0)
    n = tl.program_id(1).to(tl.int64)
    c = tl.arange(0, BLOCK_C)
    p = pid_p * BLOCK_P + tl.arange(0, BLOCK_P)
    offs = n * C * HW + c[:, None].to(tl.int64) * HW + p[None, :]
    mask = (c[:, None] < C) & (p[None, :] < HW)
    x = tl.load(x_ptr + offs, mask=mask, other=0.0)
    mean_sq = tl.sum(x * x, axis=0) / C
    r = tl.rsqrt(mean_sq + eps)
    tl.store(y_ptr + offs, x * r[None, :], mask=mask)


class ModelNew(nn.Module):
    """RMS norm over the channels: a (channels x pixels) tile is read once and kept on chip."""

    def __init__(self, num_features: int, eps: float = 1e-5):
        super().__init__()
        self.num_features = num_features
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        n, c = x.shape[0], x.shape[1]
        hw = x.numel() // (n * c)
        y = torch.empty_like(x)
        BLOCK_P = 128
        grid = (triton.cdiv(hw, BLOCK_P), n)
        rms_norm_kernel[grid](
            x, y, c, hw, self.eps,
            BLOCK_C=triton.next_power_of_2(c), BLOCK_P=BLOCK_P, num_warps=8,
        )
        return y
