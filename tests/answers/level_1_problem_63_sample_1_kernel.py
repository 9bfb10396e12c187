import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    """
    The convolution runs in channels_last with cuDNN's autotuner: with 16 input channels and 128
    output channels the NHWC tensor-core kernels are the fastest ones on Hopper.
    """

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1,
                 padding: int = 0, dilation: int = 1, groups: int = 1, bias: bool = False):
        super().__init__()
        self.conv2d = nn.Conv2d(in_channels, out_channels, (kernel_size, kernel_size),
                                stride=stride, padding=padding, dilation=dilation, groups=groups,
                                bias=bias)
        self.conv2d = self.conv2d.to(memory_format=torch.channels_last)
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.groups = groups

    @torch.inference_mode()
    def _run(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous(memory_format=torch.channels_last)
        with torch.backends.cudnn.flags(enabled=True, benchmark=True, deterministic=False,
                                        allow_tf32=True):
            return F.conv2d(x, self.conv2d.weight, self.conv2d.bias, self.stride, self.padding,
                            self.dilation, self.groups)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not torch.is_grad_enabled() or not self.training:
            return self._run(x)
        return self.conv2d(x.contiguous(memory_format=torch.channels_last))
