import torch
import torch.nn as nn


class ModelNew(nn.Module):
    """
    The sum over the output features commutes with the matrix product:
        sum_j (x @ W^T + b)_j = x @ (sum_j W_j) + sum_j b_j
    and the max, mean and both logsumexp run over a dimension of size one, where they are the
    identity. What is left is a column sum and a matrix-vector product. A CUDA graph removes the
    launch overhead of the few kernels.
    """

    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self._graph = None
        self._x = None
        self._y = None
        self._key = None

    def _compute(self, x):
        w = self.linear.weight.sum(dim=0)
        b = self.linear.bias.sum()
        return torch.mv(x, w).add_(b).unsqueeze(1)

    def _capture(self, x):
        self._x = x.clone()
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self._compute(self._x)
        torch.cuda.current_stream().wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._y = self._compute(self._x)
        self._key = (x.shape, x.dtype, x.device, self.linear.weight.data_ptr())

    @torch.no_grad()
    def forward(self, x):
        if not x.is_cuda:
            return self._compute(x)
        if self._key != (x.shape, x.dtype, x.device, self.linear.weight.data_ptr()):
            self._capture(x)
        self._x.copy_(x)
        self._graph.replay()
        return self._y.clone()
