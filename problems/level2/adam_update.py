"""One step of the AdamW optimiser: new weights and both new moments, element by element.

Four tensors are read and three written; the learning rate and the number of the step change from
call to call.
"""

import random
from typing import Tuple

import torch
import torch.nn as nn

ROWS = 512
COLUMNS = 512
DECAY_FIRST = 0.9
DECAY_SECOND = 0.999
WEIGHT_DECAY = 0.1
EPSILON = 1e-8


class Model(nn.Module):
    def __init__(
        self, decay_first: float, decay_second: float, weight_decay: float, epsilon: float
    ):
        super().__init__()
        self.decay_first = decay_first
        self.decay_second = decay_second
        self.weight_decay = weight_decay
        self.epsilon = epsilon

    def forward(
        self,
        weights: torch.Tensor,
        gradient: torch.Tensor,
        first_moment: torch.Tensor,
        second_moment: torch.Tensor,
        learning_rate: float,
        step: int,
    ) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Each tensor: (ROWS, COLUMNS), second_moment not negative; step counts from 1.

        Returns the new weights, first moment and second moment, each that shape.
        """
        first = self.decay_first * first_moment + (1 - self.decay_first) * gradient
        second = self.decay_second * second_moment + (1 - self.decay_second) * gradient * gradient
        mean = first / (1 - self.decay_first**step)
        deviation = torch.sqrt(second / (1 - self.decay_second**step)) + self.epsilon
        decayed = weights * (1 - learning_rate * self.weight_decay)
        return decayed - learning_rate * mean / deviation, first, second


def get_inputs():
    shape = (ROWS, COLUMNS)
    return [
        0.02 * torch.randn(shape),
        torch.randn(shape),
        0.3 * torch.randn(shape),
        torch.rand(shape),
        random.uniform(0.005, 0.02),
        # Later steps would leave the correction of the first moment without effect.
        random.randint(1, 60),
    ]


def get_init_inputs():
    return [DECAY_FIRST, DECAY_SECOND, WEIGHT_DECAY, EPSILON]
