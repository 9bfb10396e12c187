"""A policy learns which values of a kernel's `//! tune` lines are fast, by a reward of its own.

Usage: python3 examples/training.py [SAMPLES], with the package `assay` installed, or python/ in
PYTHONPATH. The policy draws each value by a weight; a reward above the mean so far raises the
weights of what was drawn (REINFORCE with a baseline, the least of it).
"""

import math
import pathlib
import random
import re
import sys

import assay

KERNEL = pathlib.Path(__file__).resolve().parents[1] / "kernels" / "softmax" / "tunable.cpp"


def reward_of(verdict):
    """Of one's own choice: the logarithm of the speedup, and a fine for what is not correct."""
    return math.log(verdict.speedup) if verdict.correct and verdict.speedup else -1.0


def main(samples=8):
    text = KERNEL.read_text(encoding="utf-8")
    lines = re.findall(r"^//! tune (\w+) = (.*)$", text, re.MULTILINE)
    weights = {name: dict.fromkeys(values.split(), 0.0) for name, values in lines}
    rewards = []
    with assay.Session(size="tiny", threads=1, budget_s=4, futility=True) as session:
        while len(rewards) < int(samples):
            drawn = {}
            for name, values in weights.items():
                odds = [math.exp(weight) for weight in values.values()]
                [drawn[name]] = random.choices(list(values), odds)
            variant = re.sub(r"(?m)^(//! tune (\w+) =).*", lambda m: f"{m[1]} {drawn[m[2]]}", text)
            try:
                [verdict] = session.judge("softmax", variant)
            except assay.UsageError:  # `//! require` forbids these values
                continue
            rewards.append(reward_of(verdict))
            advantage = rewards[-1] - sum(rewards) / len(rewards)
            for name, value in drawn.items():
                weights[name][value] += 0.5 * advantage
            print(f"{verdict.outcome:10} {rewards[-1]:+.2f} {' '.join(drawn.values())}")
    print({name: max(values, key=values.get) for name, values in weights.items()})


if __name__ == "__main__":
    main(*sys.argv[1:])
