"""A sample in the layout of KernelBench-Hard: relu(x) * scale."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, rows: int, columns: int):
        super().__init__()
        self.register_buffer("scale", torch.full((columns,), 0.5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x) * self.scale


rows = 8
columns = 16


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return [rows, columns]
