import torch
import torch.nn as nn
import torch.nn.functional as F


def _mish_fast(x):
    # tanh(softplus(x)) without the logarithm: n / (n + 2), n = e^x (e^x + 2)
    e = torch.exp(torch.clamp(x, max=20.0))
    n = e * (e + 2.0)
    return x * (n / (n + 2.0))


def _conv_mish_mish(x, w, b):
    y = F.conv2d(x, w, b)
    return _mish_fast(_mish_fast(y))


class ModelNew(nn.Module):
    """Convolution in channels_last; both activations are fused by torch.compile."""

    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.conv = self.conv.to(memory_format=torch.channels_last)
        self._fn = torch.compile(_conv_mish_mish, mode="max-autotune-no-cudagraphs",
                                 dynamic=False)

    def forward(self, x):
        x = x.contiguous(memory_format=torch.channels_last)
        return self._fn(x, self.conv.weight, self.conv.bias)
