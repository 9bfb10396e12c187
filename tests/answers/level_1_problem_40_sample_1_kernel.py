import torch
import torch.nn as nn


@torch.compile
def _normalise(x, mean, rstd, weight, bias):
    return (x - mean) * rstd * weight + bias


class ModelNew(nn.Module):
    """
    Layer norm over a few very long rows.

    The library's layer norm gives one block to a row, which leaves most of the GPU idle with 16
    rows. Here the statistics come from general reductions, which split a row over many blocks:
    first over chunks of the row, then over the chunks. The rest is one fused element-wise kernel.
    """

    CHUNKS = 1024

    def __init__(self, normalized_shape: tuple):
        super().__init__()
        self.ln = nn.LayerNorm(normalized_shape=normalized_shape)

    @torch.no_grad()
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        ln = self.ln
        length = ln.weight.numel()
        rows = x.numel() // length
        if length % self.CHUNKS:
            return ln(x)
        parts = x.reshape(rows, self.CHUNKS, length // self.CHUNKS)
        var_c, mean_c = torch.var_mean(parts, dim=2, correction=0)
        # All chunks are equally long: total variance = mean of variances + variance of means.
        var_of_means, mean = torch.var_mean(mean_c, dim=1, correction=0)
        rstd = torch.rsqrt(var_c.mean(dim=1) + var_of_means + ln.eps)
        y = _normalise(
            x.reshape(rows, length),
            mean.unsqueeze(1),
            rstd.unsqueeze(1),
            ln.weight.reshape(1, length),
            ln.bias.reshape(1, length),
        )
        return y.view_as(x)
