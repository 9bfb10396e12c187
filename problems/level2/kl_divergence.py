"""The Kullback-Leibler divergence of each row's softmax from a teacher's: a distillation loss.

sum(p * (log p - log q)), where p is the softmax of the teacher's logits and q of the student's.
"""

import torch
import torch.nn as nn

ROWS = 768
CLASSES = 1024


class Model(nn.Module):
    def forward(self, student: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
        """student, teacher: (ROWS, CLASSES), logits. Returns (ROWS)."""
        student_log = torch.log_softmax(student, dim=-1)
        teacher_log = torch.log_softmax(teacher, dim=-1)
        return (teacher_log.exp() * (teacher_log - student_log)).sum(dim=-1)


def get_inputs():
    return [2.0 * torch.randn(ROWS, CLASSES), 2.0 * torch.randn(ROWS, CLASSES)]


def get_init_inputs():
    return []
