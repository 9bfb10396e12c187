#!POPCORN leaderboard scale_py
#!POPCORN gpu A100
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    x, factor = data
    return x.mul(factor)
