#!/usr/bin/env python3
"""What A/A series (bench/aa.py) say about the noise of a machine.

    bench/aa_summary.py bench/results/MACHINE/aa_*.jsonl

One row a file: outcomes, pairs and seconds a verdict, and quantiles of |ln ratio| of whole verdicts
and of single pairs. Programs are identical, so the ratios are what noise and bias do; `unsettled`
verdicts, whose machine was busy, are counted and left out of the quantiles. The last column is the
mean of ln(t_reference / t_candidate) over pairs with its standard error: a judge that favours no
side gives zero.
"""
import json
import math
import pathlib
import statistics
import sys


def pair_log_ratio(pair):
    """Median over rounds of the mean ln(t_reference / t_candidate) of a round's two halves."""
    times = [block - settle for block, settle in zip(pair["block_ns"], pair["settle_ns"])]
    rounds = []
    for at in range(0, len(times) - 3, 4):
        signs = [1 if side == "r" else -1 for side in pair["order"][at : at + 4]]
        rounds.append(
            sum(sign * math.log(time) for sign, time in zip(signs, times[at : at + 4])) / 2
        )
    return statistics.median(rounds)


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.floor(share * len(ordered)))] if ordered else 0.0


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: bench/aa_summary.py FILE.jsonl...")
    print(
        "series | verdicts | faster | slower | tie | unsettled | call | pairs | s | "
        "verdict 50% | 99% | max | pair 99% | 99.9% | max | favours the candidate by"
    )
    for path in map(pathlib.Path, sys.argv[1:]):
        verdicts = [json.loads(line) for line in path.read_text().splitlines()]
        outcomes = [verdict["outcome"] for verdict in verdicts]
        settled = [verdict for verdict in verdicts if verdict["outcome"] != "unsettled"]
        whole = [abs(math.log(verdict["result"]["speedup"])) for verdict in settled]
        signed = [pair_log_ratio(pair) for verdict in settled for pair in verdict["samples"]]
        pairs = [abs(ratio) for ratio in signed]
        cells = [path.stem, str(len(verdicts))]
        cells += [str(outcomes.count(name)) for name in ("faster", "slower", "tie", "unsettled")]
        median = statistics.median
        cells.append(f"{median(v['result']['time_ns'] for v in settled) / 1e3:.0f} us")
        cells.append(f"{statistics.mean(v['result']['pairs'] for v in settled):.1f}")
        cells.append(f"{statistics.mean(v['cost']['total_s'] for v in settled):.1f}")
        for values, shares in ((whole, (0.5, 0.99)), (pairs, (0.99, 0.999))):
            cells += [f"{quantile(values, share):.2%}" for share in shares]
            cells.append(f"{max(values):.2%}")
        error = statistics.stdev(signed) / len(signed) ** 0.5
        cells.append(f"{statistics.mean(signed):+.2%} (s.e. {error:.2%})")
        print(" | ".join(cells))


if __name__ == "__main__":
    main()
