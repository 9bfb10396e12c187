"""Adds up a trace of the program (ASSAY_TRACE=FILE): how often each span came, how long it took in
all, and how long without the spans inside it.

    python3 bench/trace_summary.py TRACE [--from NAME:N] [--to NAME:N]

--from and --to keep what lies between the begin of the N-th span of a name and the end of another
(N counts from 1): `--from "gate 1:2" --to "gate 2:2"` is the second candidate of a call.
"""
import argparse
import collections
import json
import pathlib


def read(path):
    """Spans of the trace, by their begin."""
    lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()[1:]
    return sorted((json.loads(line.rstrip(",")) for line in lines), key=lambda e: e["ts"])


def nth(spans, which):
    name, _, number = which.rpartition(":")
    found = [span for span in spans if span["name"] == name]
    if len(found) < int(number):
        raise SystemExit(f"the trace has {len(found)} spans of the name '{name}'")
    return found[int(number) - 1]


def sums(spans):
    """By name: count, whole time and time of its own [us]."""
    whole, own, count = (collections.Counter() for _ in range(3))
    inside = collections.defaultdict(list)  # by lane, the spans that are open
    for span in spans:
        stack = inside[span["tid"]]
        while stack and stack[-1]["ts"] + stack[-1]["dur"] <= span["ts"]:
            stack.pop()
        if stack:
            own[stack[-1]["name"]] -= span["dur"]
        stack.append(span)
        count[span["name"]] += 1
        whole[span["name"]] += span["dur"]
        own[span["name"]] += span["dur"]
    return count, whole, own


def show(spans, file=None):
    """The sums of these spans as a table, on standard output unless a file is named."""
    count, whole, own = sums(spans)
    begin, end = spans[0]["ts"], max(span["ts"] + span["dur"] for span in spans)
    print(f"{'from begin to end':32} {(end - begin) / 1e3:10.1f} ms", file=file)
    print(f"{'span':32} {'whole ms':>10} {'own ms':>10} {'count':>6}", file=file)
    for name, time_us in own.most_common():
        times = f"{whole[name] / 1e3:10.1f} {time_us / 1e3:10.1f} {count[name]:6}"
        print(f"{name:32} {times}", file=file)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace")
    parser.add_argument("--from", dest="first")
    parser.add_argument("--to", dest="last")
    arguments = parser.parse_args()
    spans = read(arguments.trace)
    begin = nth(spans, arguments.first)["ts"] if arguments.first else spans[0]["ts"]
    last = nth(spans, arguments.last) if arguments.last else None
    end = last["ts"] + last["dur"] if last else max(s["ts"] + s["dur"] for s in spans)
    kept = [s for s in spans if s["ts"] >= begin and s["ts"] + s["dur"] <= end]
    show(kept)


if __name__ == "__main__":
    main()
