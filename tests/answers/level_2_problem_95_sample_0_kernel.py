import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def act_chain_kernel(y_ptr, b_ptr, add_ptr, N, BLOCK: tl.constexpr):
    # Linear bias + add_value + swish + tanh + gelu + hardtanh, in place on the GEMM's output.
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    m = cols < N
    p = y_ptr + row * N + cols
    x = tl.load(p, mask=m, other=0.0)
    x += tl.load(b_ptr + cols, mask=m, other=0.0) + tl.load(add_ptr + cols, mask=m, other=0.0)
    x = x * tl.sigmoid(x)
    x = 2.0 * tl.sigmoid(2.0 * x) - 1.0
    x = 0.5 * x * (1.0 + tl.math.erf(x * 0.7071067811865476))
    x = tl.minimum(tl.maximum(x, -1.0), 1.0)
    tl.store(p, x, mask=m)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, add_value_shape):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.add_value = nn.Parameter(torch.randn(add_value_shape))

    def forward(self, x):
        y = torch.mm(x, self.matmul.weight.t())
        M, N = y.shape
        BLOCK = 1024
        act_chain_kernel[(M, triton.cdiv(N, BLOCK))](y, self.matmul.bias, self.add_value, N,
                                                     BLOCK=BLOCK, num_warps=4)
        return y
