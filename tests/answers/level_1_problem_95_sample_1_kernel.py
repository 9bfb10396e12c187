import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def cross_entropy_kernel(logits_ptr, target_ptr, loss_ptr, n_classes, inv_rows,
                         BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK)
    base = logits_ptr + row * n_classes
    x = tl.load(base + offs, mask=offs < n_classes, other=-float("inf"))
    t = tl.load(target_ptr + row)
    m = tl.max(x, axis=0)
    lse = m + tl.log(tl.sum(tl.exp(x - m), axis=0))
    picked = tl.load(base + t)
    tl.atomic_add(loss_ptr, (lse - picked) * inv_rows)


class ModelNew(nn.Module):
    def __init__(self):
        super(ModelNew, self).__init__()

    def forward(self, predictions, targets):
        predictions = predictions.contiguous()
        rows, classes = predictions.shape
        loss = torch.zeros((), device=predictions.device, dtype=torch.float32)
        cross_entropy_kernel[(rows,)](predictions, targets, loss, classes, 1.0 / rows,
                                      BLOCK=triton.next_power_of_2(classes), num_warps=8)
        return loss
