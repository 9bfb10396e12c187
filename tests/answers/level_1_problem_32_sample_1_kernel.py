import torch
import torch.nn as nn


@torch.compile(mode="max-autotune-no-cudagraphs", dynamic=False)
def _hardtanh(x: torch.Tensor) -> torch.Tensor:
    return torch.clamp(x, -1.0, 1.0)


class ModelNew(nn.Module):
    """HardTanh as one compiled element-wise kernel, without autograd bookkeeping."""

    def __init__(self):
        super().__init__()

    @torch.no_grad()
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return _hardtanh(x)
