import torch
from task import input_t, output_t
from utils import same


def generate_input(size: int, seed: int) -> input_t:
    generator = torch.Generator()
    generator.manual_seed(seed)
    return torch.randn(size, size, generator=generator), 3.0


def ref_kernel(data: input_t) -> output_t:
    x, factor = data
    return x * factor


def check_implementation(data: input_t, output: output_t):
    return same(ref_kernel(data), output)
