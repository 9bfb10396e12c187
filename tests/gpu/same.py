"""PyTorch's own softmax, as a candidate: beside itself."""
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)
