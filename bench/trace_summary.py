"""Adds up a trace of the program (ASSAY_TRACE=FILE): how often each span came, how long it took in
all, and how long without the spans inside it.

    python3 bench/trace_summary.py TRACE [--from NAME:N] [--to NAME:N] [--turns]

--from and --to keep what lies between the begin of the N-th span of a name and the end of another
(N counts from 1): `--from "gate 1:2" --to "gate 2:2"` is the second candidate of a call.

--turns accounts for the wall time of a run by several workers of one GPU: who had the GPU, who
waited for it, and what those that had it did meanwhile, by the innermost span of the thread that
judges.
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


TURNS = 1  # the lane of turns at a GPU (src/gpu/turns.cc)
ALONE, SHARED, WAIT = "have the GPU alone", "share the GPU", "wait to have the GPU alone"
MEMORY = "wait for the GPU's memory"  # of a judging thread (src/gpu/reserved_memory.cc)


def innermost(spans):
    """(time, name) wherever the innermost span of one thread changes; name: "" outside of all."""
    changes, stack = [], []

    def close(until):
        while stack and stack[-1]["ts"] + stack[-1]["dur"] <= until:
            end = stack.pop()
            changes.append((end["ts"] + end["dur"], stack[-1]["name"] if stack else ""))

    for span in spans:
        close(span["ts"])
        stack.append(span)
        changes.append((span["ts"], span["name"]))
    close(float("inf"))
    return changes


def judging_thread(spans):
    """Of a process's spans, those of the thread that has most gates and pairs."""
    judges = ("gate 1", "gate 2", "pair")
    lanes = collections.Counter(span["tid"] for span in spans if span["name"] in judges)
    lane = lanes.most_common(1)[0][0] if lanes else spans[0]["pid"]
    return [span for span in spans if span["tid"] == lane]


def turns(spans):
    """Wall time [us] by (state of the GPU, span); a time of several processes is shared equally."""
    events = []  # (time, process, what changes, its new value)
    by_process = collections.defaultdict(list)
    for span in spans:
        if span["tid"] == TURNS:
            events.append((span["ts"], span["pid"], span["name"], True))
            events.append((span["ts"] + span["dur"], span["pid"], span["name"], False))
        else:
            by_process[span["pid"]].append(span)
    for process, own in by_process.items():
        events += [(t, process, "does", name) for t, name in innermost(judging_thread(own))]
    events.sort(key=lambda event: event[0])
    state = collections.defaultdict(dict)
    sums = collections.Counter()
    before = events[0][0]
    for time_us, process, what, value in events:
        if time_us > before:
            for key, share in now(state).items():
                sums[key] += share * (time_us - before)
            before = time_us
        state[process][what] = value
    return sums


def now(state):
    """The shares of this moment by (state of the GPU, span)."""
    having = {name: [p for p, s in state.items() if s.get(name)] for name in (ALONE, SHARED, WAIT)}
    if having[ALONE]:
        title, whose = "one has it alone", having[ALONE]
    elif having[WAIT] and having[SHARED]:
        title, whose = "one waits to have it alone; those that share it", having[SHARED]
    elif having[SHARED]:
        title, whose = "it is shared, none waits", having[SHARED]
    else:
        whose = [p for p in state if state[p].get("does")]
        waits = any(state[p]["does"] == MEMORY for p in whose)
        title = "nobody has it, one waits for its memory" if waits else "nobody has it"
    shares = collections.Counter()
    for process in whose:
        shares[(title, state[process].get("does") or "between spans")] += 1 / len(whose)
    return shares or {(title, "between spans"): 1}


def show_turns(spans):
    """What turns() found, as a table on standard output."""
    sums = turns(spans)
    whole = sum(sums.values())
    print(f"{'wall time':54} {whole / 1e6:9.1f} s")
    waited = sum(span["dur"] for span in spans if span["name"] == MEMORY)
    print(f"{'all processes wait for memory, together':54} {waited / 1e6:9.1f} s")
    by_state = collections.Counter()
    for (title, _), time_us in sums.items():
        by_state[title] += time_us
    for title, time_us in by_state.most_common():
        print(f"{title:54} {time_us / 1e6:9.1f} s {time_us / whole:6.1%}")
        own = {name: spent for (of, name), spent in sums.items() if of == title}
        for name, spent in sorted(own.items(), key=lambda each: -each[1]):
            if spent >= whole / 500:
                print(f"    {name:50} {spent / 1e6:9.1f} s {spent / whole:6.1%}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace")
    parser.add_argument("--from", dest="first")
    parser.add_argument("--to", dest="last")
    parser.add_argument("--turns", action="store_true")
    arguments = parser.parse_args()
    spans = read(arguments.trace)
    begin = nth(spans, arguments.first)["ts"] if arguments.first else spans[0]["ts"]
    last = nth(spans, arguments.last) if arguments.last else None
    end = last["ts"] + last["dur"] if last else max(s["ts"] + s["dur"] for s in spans)
    kept = [s for s in spans if s["ts"] >= begin and s["ts"] + s["dur"] <= end]
    if arguments.turns:
        show_turns(kept)
    else:
        show(kept)


if __name__ == "__main__":
    main()
