import torch
import torch.nn as nn


class ModelNew(nn.Module):
    """
    relu(z) / d == relu(z / d) for d > 0, and z / d is the same GEMM with alpha = beta = 1 / d.
    torch._addmm_activation runs the GEMM with the bias and the ReLU in cuBLASLt's epilogue where
    it can, so that the output is written once.
    """

    def __init__(self, in_features, out_features, divisor):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.divisor = divisor

    def forward(self, x):
        w, b = self.linear.weight, self.linear.bias
        if self.divisor > 0:
            # The epilogue path wants beta == 1, so the (small) bias is scaled here instead.
            inv = 1.0 / self.divisor
            return torch._addmm_activation(b * inv, x, w.t(), beta=1, alpha=inv, use_gelu=False)
        return torch.relu_(torch.addmm(b, x, w.t())).div_(self.divisor)
