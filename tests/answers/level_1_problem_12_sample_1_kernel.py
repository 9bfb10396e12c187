import torch
import torch.nn as nn


class ModelNew(nn.Module):
    """
    diag(A) @ B as a broadcast product, replayed from a CUDA graph.

    The graph is captured for the addresses of the inputs, so a replay reads what the inputs hold
    at that time; other tensors (address, shape, strides) are captured anew. The graph writes
    into an output buffer of its own, which the next call with the same inputs writes again.
    """

    def __init__(self):
        super().__init__()
        self._graphs = {}

    @staticmethod
    def _key(*tensors):
        return tuple((t.data_ptr(), tuple(t.shape), t.stride(), t.dtype) for t in tensors)

    def _capture(self, A, B):
        out = torch.empty_like(B)
        col = A.unsqueeze(1)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            torch.mul(col, B, out=out)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            torch.mul(col, B, out=out)
        return graph, out

    @torch.no_grad()
    def forward(self, A, B):
        if not A.is_cuda:
            return A.unsqueeze(1) * B
        key = self._key(A, B)
        entry = self._graphs.get(key)
        if entry is None:
            if len(self._graphs) >= 8:
                self._graphs.clear()
            entry = self._graphs[key] = self._capture(A, B)
        graph, out = entry
        graph.replay()
        return out
