"""Errors of honest and rounded float32 programs against float64, beside PyTorch's own.

The data of the table in bench/results/NOTES.md, as JSON lines; errors are in units of float32's
roundoff, 2^-24. Needs a Python with PyTorch and NumPy.
Usage: gate1_errors.py [SEED]
"""

import json
import sys

import numpy
import torch

ROUNDOFF = 2.0**-24


def round_to_tf32(values):
    bits = values.astype(numpy.float32).view(numpy.uint32)
    bits = (bits + 0xFFF + ((bits >> 13) & 1)) & numpy.uint32(0xFFFFE000)
    return bits.view(numpy.float32)


def sum_naively(rows):
    total = numpy.zeros(rows.shape[0], numpy.float32)
    for column in range(rows.shape[1]):
        total = total + rows[:, column]
    return total


def multiply_naively(a, b):
    product = numpy.zeros((a.shape[0], b.shape[1]), numpy.float32)
    for k in range(a.shape[1]):
        product = product + numpy.outer(a[:, k], b[k])
    return product


def normalise(x, add):
    count = numpy.float32(x.shape[1])
    centred = x - (add(x) / count)[:, None]
    variance = add(centred * centred) / count
    return centred / numpy.sqrt(variance + numpy.float32(1e-5))[:, None]


def normalise_in_one_pass(x):
    count = numpy.float32(x.shape[1])
    mean = x.sum(1) / count
    variance = numpy.maximum((x * x).sum(1) / count - mean * mean, 0)
    return (x - mean[:, None]) / numpy.sqrt(variance + numpy.float32(1e-5))[:, None]


def report(program, data, terms, candidate, reference, truth):
    wide = [numpy.atleast_2d(v).astype(numpy.float64) for v in (truth, candidate, reference)]
    truth, candidate, reference = wide
    scale = numpy.sqrt((truth**2).mean(-1, keepdims=True)) + abs(truth)
    norm = numpy.linalg.norm(truth)
    line = {"program": program, "data": data, "terms": terms}
    for name, output in (("candidate", candidate), ("reference", reference)):
        error = abs(output - truth)
        line[f"{name}_norm_u"] = float(f"{numpy.linalg.norm(error) / norm / ROUNDOFF:.4g}")
        line[f"{name}_element_u"] = float(f"{(error / scale).max() / ROUNDOFF:.4g}")
    print(json.dumps(line))


def measure_sums(data, draw):
    for terms in (4096, 65536):
        x = draw((256, terms))
        truth = x.astype(numpy.float64).sum(1)
        reference = torch.from_numpy(x).sum(1).numpy()
        report("sum, naive", data, terms, sum_naively(x), reference, truth)
        report("sum, reversed", data, terms, sum_naively(x[:, ::-1]), reference, truth)
        rounded = round_to_tf32(x).astype(numpy.float64).sum(1)
        report("sum, inputs tf32", data, terms, rounded, reference, truth)


def measure_products(data, draw):
    for terms in (64, 256, 1024, 4096, 65536):
        a, b = draw((64, terms)), draw((terms, 64))
        truth = a.astype(numpy.float64) @ b.astype(numpy.float64)
        reference = (torch.from_numpy(a) @ torch.from_numpy(b)).numpy()
        report("product, naive", data, terms, multiply_naively(a, b), reference, truth)
        rounded = round_to_tf32(a).astype(numpy.float64) @ round_to_tf32(b).astype(numpy.float64)
        report("product, inputs tf32", data, terms, rounded, reference, truth)


def measure_rows(data, draw):
    for terms in (256, 4096, 65536):
        x = draw((64, terms))
        single, double = torch.from_numpy(x), torch.from_numpy(x).double()
        truth, reference = torch.softmax(double, 1).numpy(), torch.softmax(single, 1).numpy()
        power = numpy.exp(x - x.max(1, keepdims=True))
        naive = power / sum_naively(power)[:, None]
        report("softmax, naive", data, terms, naive, reference, truth)
        power = round_to_tf32(power)
        rounded = power / sum_naively(power)[:, None]
        report("softmax, exp tf32", data, terms, rounded, reference, truth)
        report("softmax, output tf32", data, terms, round_to_tf32(reference), reference, truth)

        norm = torch.nn.functional.layer_norm
        truth, reference = norm(double, (terms,)).numpy(), norm(single, (terms,)).numpy()
        naive = normalise(x, sum_naively)
        report("layer norm, naive", data, terms, naive, reference, truth)
        pairwise = normalise(x, lambda v: v.sum(1))
        report("layer norm, pairwise", data, terms, pairwise, reference, truth)
        report("layer norm, one pass", data, terms, normalise_in_one_pass(x), reference, truth)
        report("layer norm, output tf32", data, terms, round_to_tf32(reference), reference, truth)


def main():
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    torch.set_num_threads(1)
    random = numpy.random.default_rng(seed)
    draws = {
        "normal": lambda shape: random.standard_normal(shape).astype(numpy.float32),
        "shifted": lambda shape: random.normal(1000, 0.1, shape).astype(numpy.float32),
        "uniform": lambda shape: random.random(shape).astype(numpy.float32),
    }
    print(json.dumps({"seed": seed, "torch": torch.__version__, "numpy": numpy.__version__}))
    for data, draw in draws.items():
        measure_sums(data, draw)
        measure_products(data, draw)
        measure_rows(data, draw)


if __name__ == "__main__":
    main()
