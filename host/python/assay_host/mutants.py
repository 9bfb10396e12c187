"""Mutants of the reference, for `assay audit`: outputs of candidates that are wrong in a known way.
The judge runs gate 1 on each; one that passes shows a gap in the problem's tests.

Requests:
  kMutants  args: slot that holds an ordinary draw and its outputs, 1 for mutants of operators
            alone, which are then not tried before; carries a writable memfd
            [bytes of JSON written to it]: {"mutants": [...], "operators": [{"name", "line"}],
            "mends": [...], "left_out": N}
  kMutate   args: number in that list, slot of the draw, slot for the mutant's outputs
            [1 when they differ from the reference's, 1 when it threw]
The mutant's outputs lie in the second slot; bytes that it does not write keep the judge's poison.

A mutant has a family, a subject (an output, an input or a weight by name, or nothing), and a
description in words. `precision`: the class that it computes in, if that is its fault.
"""

import dataclasses
import json
import typing

import torch

from assay_host import failure, mends, mutant_operators, values, wire
from assay_host.failure import Failure

# Draws that mutants take other values from; nothing rests on their being secret.
_OTHER_SEED = 0x0A5517
_THIRD_SEED = 0x0A5518
_OUTPUTS_MAX = 16
_WEIGHTS_MAX = 48


@dataclasses.dataclass
class _Mutant:
    family: str
    subject: str
    words: str
    write: typing.Callable  # (case): writes case.targets
    precision: str = ""
    operator: int = -1  # number of the operator that is mutated
    time_share: float = 0.0  # of forward's time, that it saves; 0 for other families


class _Case:
    """One draw, the reference's outputs, and the slot for a mutant's."""

    def __init__(self, reference, slot, target):
        slots = reference.slots()
        self.kind = reference.kind_of(slot)
        self.inputs = slots.leaves(slot)
        self.truth = slots.outputs(slot)
        self.targets = slots.outputs(target)

    def keep(self):
        for target, truth in zip(self.targets, self.truth):
            target.copy_(truth)


def _differ(a, b):
    """Compares by value: zeros of either sign are equal, and so are NaN."""
    if a.dtype == torch.bool:  # other bytes than 0 and 1 count
        a, b = a.view(torch.uint8), b.view(torch.uint8)
    equal = a == b
    if a.dtype.is_floating_point:
        equal |= torch.isnan(a) & torch.isnan(b)
    return not bool(equal.all())


def _fewer_bits(tensor):
    """Rounds float32 to the 11 significant bits of tensor cores, ties to even."""
    if tensor.dtype != torch.float32:
        return tensor.to(torch.float16).to(tensor.dtype)
    bits = tensor.contiguous().view(torch.int32)
    odd = (bits >> 13) & 1
    shorter = ((bits + 0xFFF + odd) & ~0x1FFF).view(torch.float32)
    return torch.where(torch.isfinite(tensor), shorter, tensor)


def _through(dtype):
    return lambda tensor: tensor.to(dtype).to(tensor.dtype)


# What an author calls it, the class of its errors, how it rounds, and whether every operator's
# result is rounded too.
_ROUNDINGS = (
    ("float32", "float32", _through(torch.float32), True),
    ("tf32 inputs and weights", "tf32", _fewer_bits, False),
    ("float16", "tf32", _through(torch.float16), True),
    ("bfloat16", "bfloat16", _through(torch.bfloat16), True),
)


class Mutants:
    def __init__(self, reference):
        self._reference = reference
        self._mutants = []
        self._fresh = {}

    def handlers(self):
        return {wire.MUTANTS: self._list, wire.MUTATE: self._mutate}

    def _list(self, args, fd):
        slot, operators_alone = args[:2]
        self._fresh = {}
        self._case = _Case(self._reference, slot, slot)
        left_out = 0
        self._mutants = []
        if not operators_alone:
            of_weights, left_out = self._of_weights()
            self._mutants += self._of_outputs() + self._of_inputs() + of_weights
            self._mutants += self._of_precision()
        of_operators, operators_left_out = self._of_operators(tries=not operators_alone)
        self._mutants += of_operators
        fields = ("family", "subject", "words", "precision", "operator", "time_share")
        catalog = {
            "mutants": [{name: getattr(item, name) for name in fields} for item in self._mutants],
            "operators": [{"name": one.name, "line": one.line} for one in self._operators],
            "mends": mends.catalog(),
            "left_out": left_out + operators_left_out,
        }
        return (wire.write_text(fd, json.dumps(catalog)),)

    def _mutate(self, args, _fd):
        number, slot, target = args[:3]
        if number >= len(self._mutants):
            raise Failure(failure.ENVIRONMENT, f"there is no mutant {number}")
        case = _Case(self._reference, slot, target)
        try:
            self._mutants[number].write(case)
        except Exception:
            return 1, 1
        return int(any(map(_differ, case.targets, case.truth))), 0

    # Outputs that were not computed

    def _of_outputs(self):
        names = [spec.name.decode() for spec in self._reference.slots().output_specs]
        found = []
        for index, name in enumerate(names[:_OUTPUTS_MAX]):
            found += self._of_output(index, name, names)
        return found

    def _of_output(self, index, name, names):
        truth = self._case.truth[index]
        whose = f"{name} " if len(names) > 1 else ""

        def mutant(family, words, change):
            def write(case):
                case.keep()
                out, right = case.targets[index], case.truth[index]
                change(case, out)
                if right.dtype.is_floating_point:
                    # NaN and infinity come out by themselves where a kernel only adds 0 * x.
                    out.copy_(torch.where(torch.isfinite(right), out, right))

            return _Mutant(family, name, whose + words, write)

        if truth.numel() == 0:
            return []
        part = max(1, truth.numel() // 16)
        found = [
            mutant("zeros", "all zero", lambda case, out: out.zero_()),
            mutant(
                "constant",
                "of another draw",
                lambda case, out: out.copy_(self._other_outputs()[index]),
            ),
            mutant(
                "block",
                "with zeros in the last block",
                lambda case, out: out.view(-1)[-part:].zero_(),
            ),
            mutant(
                "block",
                "with another draw's last block",
                lambda case, out: out.view(-1)[-part:].copy_(
                    self._other_outputs()[index].reshape(-1)[-part:]
                ),
            ),
        ]

        def unwritten(case):
            for number, (target, right) in enumerate(zip(case.targets, case.truth)):
                kept = right.numel() - (part if number == index else 0)
                target.view(-1)[:kept].copy_(right.view(-1)[:kept])

        found.append(_Mutant("block", name, whose + "with the last block unwritten", unwritten))
        if truth.numel() > 1:
            found.append(mutant("mean", "its mean everywhere", _write_mean))
        lead = next((dim for dim, size in enumerate(truth.shape) if size > 1), None)
        if lead is not None:
            found.append(
                mutant(
                    "batch",
                    "the first of the batch for all",
                    lambda case, out: out.copy_(out.narrow(lead, 0, 1).clone().expand_as(out)),
                )
            )
        for number, (label, value) in enumerate(self._inputs()):
            if not isinstance(value, torch.Tensor) or value.numel() != truth.numel():
                continue
            if value.dtype.is_floating_point != truth.dtype.is_floating_point:
                continue
            found.append(
                mutant(
                    "copy",
                    f"a copy of {label}",
                    lambda case, out, number=number: out.copy_(case.inputs[number].view_as(out)),
                )
            )
        return found

    # Inputs and weights that are not looked at

    def _inputs(self):
        names = [spec.name.decode() for spec in self._reference.slots().input_specs]
        return list(zip(names, self._case.inputs))

    def _fresh_inputs(self, kind, seed=_OTHER_SEED):
        if (kind, seed) not in self._fresh:
            leaves, _ = self._reference.drawn(seed, kind)
            self._fresh[kind, seed] = [
                values.dense(value) if isinstance(value, torch.Tensor) else value
                for _, value in leaves
            ]
        return self._fresh[kind, seed]

    def _other_outputs(self):
        if "outputs" not in self._fresh:
            outputs = self._reference.run_anew(self._fresh_inputs(0))
            self._fresh["outputs"] = [values.dense(tensor).clone() for tensor in outputs]
        return self._fresh["outputs"]

    def _of_inputs(self):
        found = []
        for number, (name, value) in enumerate(self._inputs()):
            others = [self._fresh_inputs(0, seed)[number] for seed in (_OTHER_SEED, _THIRD_SEED)]
            single = not isinstance(value, torch.Tensor) or value.numel() <= 1
            if isinstance(value, torch.Tensor):
                varies = any(_differ(value, other) for other in others)
            else:
                varies = any(value != other for other in others)
            if single and not varies:
                continue  # a constant of the problem

            def write(case, number=number):
                leaves = list(case.inputs)
                leaves[number] = self._fresh_inputs(case.kind)[number]
                self._write(case, self._reference.run_anew(leaves))

            words = f"{name} of another draw"
            if not varies:
                words = f"any other {name}: it is the same in every draw"
            found.append(_Mutant("input", name, words, write))
        return found

    def _of_weights(self):
        """Returns mutants that replace one weight each by its mean: a guess that never reads the
        weight.
        """
        weights = [(n, t) for n, t in self._reference.weights().items() if t.numel() > 0]
        chosen = mutant_operators.evenly(weights, _WEIGHTS_MAX)
        found = []
        for name, tensor in chosen:
            constant = bool((tensor == tensor.flatten()[0]).all())
            guess = tensor.double().mean().item()
            if tensor.numel() == 1 and guess not in (0.0, 1.0):
                guess = 0.0  # a number that is not everybody's first guess
            elif constant:
                guess = tensor.flatten()[0].item()
            words = f"{name} as if it were {guess:.4g}"
            if tensor.numel() > 1:
                words += " everywhere" + (", as it is" if constant else "")
            found.append(_Mutant("weight", name, words, self._with_weight(tensor, guess)))
        return found, len(weights) - len(chosen)

    def _with_weight(self, tensor, guess):
        def write(case):
            saved = tensor.clone()
            tensor.fill_(guess)
            try:
                outputs = [
                    values.dense(item).clone() for item in self._reference.run_anew(case.inputs)
                ]
            finally:
                tensor.copy_(saved)
            self._write(case, outputs)

        return write

    # Less precision

    def _of_precision(self):
        finest = max(
            (torch.finfo(t.dtype).bits for t in self._case.truth if t.dtype.is_floating_point),
            default=32,
        )
        rounds = [
            value.dtype
            for value in (*self._case.inputs, *self._reference.weights().values())
            if isinstance(value, torch.Tensor) and value.dtype.is_floating_point
        ]
        found = []
        for words, precision, rounding, everywhere in _ROUNDINGS:
            if not rounds or (precision == "float32" and finest <= 32):
                continue
            write = self._with_rounding(rounding, everywhere)
            found.append(
                _Mutant("precision", "", f"computed in {words}", write, precision=precision)
            )
        return found

    def _with_rounding(self, rounding, everywhere):
        def write(case):
            leaves = [
                rounding(value)
                if isinstance(value, torch.Tensor) and value.dtype.is_floating_point
                else value
                for value in case.inputs
            ]
            weights = list(self._reference.weights().values())
            saved = [tensor.clone() for tensor in weights]
            for tensor in weights:
                tensor.copy_(rounding(tensor))
            try:
                outputs = (
                    mutant_operators.rounded(lambda: self._reference.run_anew(leaves), rounding)
                    if everywhere
                    else self._reference.run_anew(leaves)
                )
                outputs = [values.dense(tensor).clone() for tensor in outputs]
            finally:
                for tensor, before in zip(weights, saved):
                    tensor.copy_(before)
            self._write(case, outputs)

        return write

    # Single operators

    def _of_operators(self, tries):
        """Returns the mutants of operators, and how many operators are left out. `tries`: without
        those that do not apply.
        """

        def forward():
            return self._reference.run_anew(self._case.inputs)

        self._operators, chosen, left_out = mutant_operators.sites(forward, self._reference.path)
        found = []
        for words, index, mutation, operator, time_share in chosen:
            if tries and _applied(forward, index, mutation) is None:
                continue

            def write(case, index=index, mutation=mutation):
                run = mutant_operators.run if tries else _applied
                outputs = run(lambda: self._reference.run_anew(case.inputs), index, mutation)
                if outputs is None:
                    case.keep()
                else:
                    self._write(case, outputs)

            found.append(
                _Mutant("operator", "", words, write, operator=operator, time_share=time_share)
            )
        return found, left_out

    def _write(self, case, outputs):
        for target, tensor in zip(case.targets, outputs):
            if target.shape != tensor.shape or target.dtype != tensor.dtype:
                raise ValueError("outputs of other shapes or types")
            target.copy_(tensor)


def _applied(forward, index, mutation):
    """As mutant_operators.run; None, too, for an operator that takes no such arguments."""
    try:
        return mutant_operators.run(forward, index, mutation)
    except Exception:
        return None


def _write_mean(_case, out):
    inside = out.double().flatten()
    inside = inside[torch.isfinite(inside)]
    mean = inside.mean().item() if inside.numel() else 0.0
    out.fill_(mean if out.dtype.is_floating_point else round(mean))
