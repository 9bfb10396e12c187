"""Small problem files that several tests share."""

SOFTMAX = """
import torch
import torch.nn as nn
N = 16
M = N * 2
class Model(nn.Module):
    def __init__(self):
        super().__init__()
    def forward(self, x):
        return torch.softmax(x, dim=1)
def get_inputs():
    return [torch.randn(N, M)]
def get_init_inputs():
    return []
"""

LINEAR = """
import torch, torch.nn as nn
class Model(nn.Module):
    def __init__(self, width, out_features):
        super().__init__()
        self.layer = nn.Linear(width, out_features)
    def forward(self, x):
        return torch.relu(self.layer(x))
def get_inputs():
    return [torch.rand(3, 5)]
def get_init_inputs():
    return [5, 7]
"""


def problem(
    forward, inputs="[torch.randn(4, 6)]", init="", arguments="self, x", extra="", init_inputs="[]"
):
    return f"""
import torch, torch.nn as nn, torch.nn.functional as F
{extra}
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init or 'pass'}
    def forward({arguments}):
        {forward}
def get_inputs():
    return {inputs}
def get_init_inputs():
    return {init_inputs}
"""
