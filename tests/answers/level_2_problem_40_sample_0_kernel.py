import torch
import torch.nn as nn


class ModelNew(nn.Module):
    """
    x * s + x is (1 + s) * x, and both halves are the same linear layer, so the whole module is one
    GEMM with alpha = beta = 1 + s:

        out = (1 + s) * bias + (1 + s) * (x @ W^T)

    cuBLAS applies alpha in its epilogue, so no extra pass over the output is needed and no copy is
    made of it. The scaled bias is a vector; it goes in through beta.
    """

    def __init__(self, in_features, out_features, scaling_factor):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.scaling_factor = scaling_factor
        self.factor = 1.0 + scaling_factor

    def forward(self, x):
        if torch.is_grad_enabled() and x.requires_grad:
            # The residual is detached in the original, which matters to gradients alone.
            y = self.matmul(x)
            return y * self.scaling_factor + y.detach()
        return torch.addmm(
            self.matmul.bias,
            x,
            self.matmul.weight.t(),
            beta=self.factor,
            alpha=self.factor,
        )
