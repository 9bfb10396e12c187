import torch
import torch.nn as nn


class ModelNew(nn.Module):
    """
    17 small layers: launch latency counts. The forward pass is captured once in a CUDA graph (for
    each input shape) and replayed; the input is copied into the graph's buffer on every call, and
    the result is copied out, so that results of earlier calls stay valid.
    """

    def __init__(self, input_size, hidden_layer_sizes, output_size):
        super().__init__()
        layers = []
        cur = input_size
        for size in hidden_layer_sizes:
            layers.append(nn.Linear(cur, size))
            layers.append(nn.ReLU())
            cur = size
        layers.append(nn.Linear(cur, output_size))
        self.network = nn.Sequential(*layers)
        self._graphs = {}

    def _run(self, x):
        linears = [m for m in self.network if isinstance(m, nn.Linear)]
        for m in linears[:-1]:
            x = torch._addmm_activation(m.bias, x, m.weight.t(), use_gelu=False)
        return torch.addmm(linears[-1].bias, x, linears[-1].weight.t())

    def _capture(self, x):
        static_in = x.clone()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self._run(static_in)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            static_out = self._run(static_in)
        return graph, static_in, static_out

    @torch.no_grad()
    def forward(self, x):
        if not x.is_cuda:
            return self.network(x)
        # The graph holds addresses: a moved parameter or another shape means another graph.
        key = (tuple(x.shape), x.dtype, x.device.index,
               tuple(p.data_ptr() for p in self.network.parameters()))
        entry = self._graphs.get(key)
        if entry is None:
            self._graphs.clear()
            entry = self._graphs[key] = self._capture(x)
        graph, static_in, static_out = entry
        static_in.copy_(x)
        graph.replay()
        return static_out.clone()
