#!/usr/bin/env python3
"""Power: how well verdicts find gains that are known, by candidates that leave out equal passes.

    bench/power.py --device cpu|cuda --results FILE.jsonl [--kinds launches,device]
                   [--forms python,native,inline,triton,device] [--times 20us,0.3ms,1ms,10ms]
                   [--gains 0,1,2,5,17] [--verdicts 20] [--budget S] [--batch 10]
    bench/power.py --summary FILE.jsonl

A problem clamps its input, and then its output in place, again and again: the same result after
any number of passes, bit for bit. A candidate that leaves out j of k passes is k / (k - j) times as
fast. `--gains` counts passes left out of 50: 0 (a copy), 1 (2.0%), 2 (4.2%), 5 (11%), 17 (52%);
with another number of passes as near to that as whole passes come. The share of a call that is not
a pass (its start, cold caches) makes the true gain slightly smaller: with a share of 5%, 11.1% is
10.5%.

Kinds: `launches` has many passes over 4096 elements, bound by their launches; `device` has few over
many elements, bound by memory. A pilot judgement a form and time chooses passes and elements.
A form without such calls (a launch takes too long) is told and left out. The
opponent of Python is the reference; that of other forms is their own program with all passes.
On a CPU there are the forms `python` and `native` (C++), on a GPU also `inline` (load_inline),
`triton` and `device` (a .cu file without host code); `native` is CUDA with a host part there.

Each verdict is a line of the results at once; a run that is stopped goes on where it was.
`seconds` of a verdict are its cost without building, and without the session's opening, which no
verdict's cost has. Ends with the table that --summary prints: shares of verdicts by outcome, the
median ratio over the true gain, pairs, and seconds.
"""
import argparse
import collections
import dataclasses
import json
import math
import os
import pathlib
import statistics
import string
import subprocess
import sys
import tempfile

import rows
from aa import clopper_pearson

ROOT = pathlib.Path(__file__).resolve().parents[1]
ASSAY = os.environ.get("ASSAY_BINARY", str(ROOT / "build" / "release" / "assay"))
KINDS = ("launches", "device")
FORMS = {"cpu": ("python", "native"), "cuda": ("python", "native", "inline", "triton", "device")}
COLUMNS = 1024  # of each row, which a block of 256 threads takes in the sources below
SMALL_ROWS = 4  # of the kind `launches`
FIFTY = 50  # what gains are counted in
PASSES_MOST = {"device": 500}  # launches that a device program may have: 512
# First guesses [ns], on the low side: what a pass over a small tensor takes.
SMALL_PASS_NS = {
    "cpu": {"python": 1000, "native": 200},
    "cuda": {"python": 2500, "native": 1500, "inline": 1500, "triton": 2500, "device": 1000},
}
# The least time of a pass of the kind `device` [ns], so that its launch is hidden or small.
LARGE_PASS_NS = {
    "cpu": {"python": 5000, "native": 400},
    "cuda": {"python": 8000, "native": 6000, "inline": 6000, "triton": 25000, "device": 5000},
}
BYTES_A_NS = {"cpu": 20, "cuda": 4000}  # a first guess
PILOTS_MOST = 3
OUTCOMES = ("faster", "slower", "tie", "unsettled")

PROBLEM = """import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.clamp(x, -0.75, 0.75)
        for _ in range($kept - 1):
            out.clamp_(-0.75, 0.75)
        return out


def get_inputs():
    return [torch.randn($row_count, 1024)]


def get_init_inputs():
    return []
"""
# The empty assembly keeps the compiler from joining a pass with the next one.
NATIVE = """#include <assay/kernel.h>

static float Clamp(float value) {
  return value < -0.75f ? -0.75f : value > 0.75f ? 0.75f : value;
}

static void Pass(float* data, int64_t count) {
  for (int64_t i = 0; i < count; ++i) data[i] = Clamp(data[i]);
  asm volatile("" : : "r"(data) : "memory");
}

ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<float, 2> out) {
  const float* from = x.data();
  float* to = out.data();
  const int64_t count = x.count();
  for (int64_t i = 0; i < count; ++i) to[i] = Clamp(from[i]);
  asm volatile("" : : "r"(to) : "memory");
  for (int pass = 1; pass < $kept; ++pass) Pass(to, count);
}
"""
KERNEL = """__device__ float Clamp(float value) {
  return value < -0.75f ? -0.75f : value > 0.75f ? 0.75f : value;
}

extern "C" __global__ void clamp_rows(const float* from, float* to) {
  const long long place = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  const float4 value = reinterpret_cast<const float4*>(from)[place];
  reinterpret_cast<float4*>(to)[place] =
      make_float4(Clamp(value.x), Clamp(value.y), Clamp(value.z), Clamp(value.w));
}
"""
CUDA = (
    "#include <assay/kernel.h>\n\n"
    + KERNEL
    + """
ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<float, 2> out, cudaStream_t stream) {
  const unsigned int blocks = static_cast<unsigned int>(x.size(0));
  clamp_rows<<<blocks, 256, 0, stream>>>(x.data(), out.data());
  for (int pass = 1; pass < $kept; ++pass)
    clamp_rows<<<blocks, 256, 0, stream>>>(out.data(), out.data());
}
"""
)
INLINE = (
    'import torch\nfrom torch.utils.cpp_extension import load_inline\n\nCUDA = r"""\n'
    "#include <torch/extension.h>\n#include <ATen/cuda/CUDAContext.h>\n\n"
    + KERNEL
    + '''
torch::Tensor clamp_often(torch::Tensor x, int64_t passes) {
  auto out = torch::empty_like(x);
  const float* from = x.data_ptr<float>();
  float* to = out.data_ptr<float>();
  const unsigned int blocks = static_cast<unsigned int>(x.size(0));
  auto stream = at::cuda::getCurrentCUDAStream();
  clamp_rows<<<blocks, 256, 0, stream>>>(from, to);
  for (int64_t pass = 1; pass < passes; ++pass)
    clamp_rows<<<blocks, 256, 0, stream>>>(to, to);
  return out;
}
"""
extension = load_inline(
    name="equal_passes",
    cpp_sources="torch::Tensor clamp_often(torch::Tensor x, int64_t passes);",
    cuda_sources=CUDA,
    functions=["clamp_often"],
)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return extension.clamp_often(x, $kept)
'''
)
TRITON = """import torch
import triton
import triton.language as tl


@triton.jit
def clamp_rows(source, target, COLUMNS: tl.constexpr):
    place = tl.program_id(0).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    value = tl.load(source + place)
    value = tl.where(value < -0.75, -0.75, value)
    tl.store(target + place, tl.where(value > 0.75, 0.75, value))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        grid = (x.shape[0],)
        clamp_rows[grid](x, out, COLUMNS=1024)
        for _ in range($kept - 1):
            clamp_rows[grid](out, out, COLUMNS=1024)
        return out
"""
LAUNCH = "//! launch clamp_rows grid=(rows) block=(256) args=({}, out)\n"


@dataclasses.dataclass(frozen=True)
class Group:
    """Verdicts that one problem and form give."""

    device: str
    kind: str
    form: str
    target_ns: float

    def __str__(self):
        return f"{self.device} {self.kind} {self.form} {time_text(self.target_ns)}"

    def key(self):
        return dataclasses.asdict(self)

    def say(self, text):
        print(f"{self}: {text}", flush=True)


@dataclasses.dataclass(frozen=True)
class Shape:
    passes: int
    row_count: int

    def left_out(self, fiftieths):
        """Passes that make about that gain; None where no whole number does."""
        exact = self.passes * fiftieths / FIFTY
        return round(exact) if abs(round(exact) - exact) <= 0.1 * exact else None


def time_text(ns):
    return f"{ns / 1e3:.3g}us" if ns < 99950 else f"{ns / 1e6:.3g}ms"


def time_ns(text):
    return float(text[:-2]) * {"us": 1e3, "ms": 1e6}[text[-2:]]


def candidate_text(group, shape, left_out):
    """The candidate's source, and how its file's name ends."""
    kept = shape.passes - left_out
    values = {"kept": kept, "row_count": shape.row_count}
    if group.form == "device":
        text = "//! dim rows = x.size(0)\n" + LAUNCH.format("x")
        text += LAUNCH.format("out") * (kept - 1) + KERNEL
        suffix = ".cu"
    elif group.form == "native":
        text, suffix = (CUDA, ".cu") if group.device == "cuda" else (NATIVE, ".cpp")
    else:
        text = {"python": PROBLEM, "inline": INLINE, "triton": TRITON}[group.form]
        suffix = ".py"
    return string.Template(text).substitute(values), suffix


def write(folder, group, shape, gains):
    """Files of the problem, of the program with all passes, and of a candidate a gain."""
    problem = folder / f"{group.kind}_passes.py"
    text = candidate_text(dataclasses.replace(group, form="python"), shape, 0)[0]
    problem.write_text(text.replace("ModelNew", "Model"), encoding="utf-8")
    paths = []
    for name, left_out in [("all", 0)] + [(f"gain_{gain}", shape.left_out(gain)) for gain in gains]:
        text, suffix = candidate_text(group, shape, left_out)
        paths.append(folder / f"{name}{suffix}")
        paths[-1].write_text(text, encoding="utf-8")
    return problem, paths[0], dict(zip(gains, paths[1:]))


def judge(group, shape, gains, budget_s):
    """Pairs of a gain and its verdict, as they come: `gains` in their order, by one session."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        problem, whole, paths = write(folder, group, shape, sorted(set(gains)))
        command = [ASSAY, "judge", str(problem), *[str(paths[gain]) for gain in gains]]
        command += ["--device", group.device, "--jsonl", "-q", "--no-save"]
        command += [] if group.form == "python" else ["--against", str(whole)]
        command += ["--budget", str(budget_s)] if budget_s else []
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            for line in process.stdout:
                event = json.loads(line)
                if event["event"] == "verdict":
                    path = pathlib.Path(event["verdict"]["candidate"]["path"])
                    yield int(path.stem.removeprefix("gain_")), event["verdict"]
        except BaseException:  # stopped, or nobody wants the rest
            process.terminate()
            raise
        finally:
            process.wait()


def result_of(verdict):
    speed = verdict["speed"]
    return (speed and speed["baselines"].get(speed["headline"])) or {}


def pilot_ns(group, shape, budget_s):
    """What a call of that shape takes the quicker of two copies; None where it was not timed."""
    for _, verdict in judge(group, shape, [0], budget_s):
        if result := result_of(verdict):
            return min(result["time_ns"], result["candidate_time_ns"])
        group.say(verdict["message"])
    return None


def whole_passes(passes):
    """The nearest number in which fiftieths can be left out; None for fewer than 7."""
    if passes >= 37:
        return FIFTY * max(1, round(passes / FIFTY))
    return 25 if passes >= 17 else 10 if passes >= 7 else None


def launches_shape(group, pass_ns):
    passes = whole_passes(group.target_ns / pass_ns)
    passes = passes and min(passes, PASSES_MOST.get(group.form, passes))
    too_short = not passes or passes * pass_ns < group.target_ns / 2
    return None if too_short else Shape(passes, SMALL_ROWS)


def device_shape(group, row_ns):
    """`row_ns` is what a row takes in one pass."""
    least_ns = LARGE_PASS_NS[group.device][group.form]
    for passes in (200, 50, 25, 10):
        if group.target_ns / passes >= least_ns:
            return Shape(passes, max(1, round(group.target_ns / passes / row_ns)))
    return None


def choose(group, options):
    """The shape whose calls take about the group's time, by pilots; None where there is none."""
    launches = group.kind == "launches"
    make = launches_shape if launches else device_shape
    guess = SMALL_PASS_NS[group.device][group.form]
    unit_ns = guess if launches else 2 * 4 * COLUMNS / BYTES_A_NS[group.device]
    shape, seen_ns = make(group, unit_ns), None
    for _ in range(PILOTS_MOST if shape else 0):
        seen_ns = pilot_ns(group, shape, options.pilot_budget)
        if seen_ns is None:
            group.say("given up: its pilot was not timed")
            return None
        size = f"{shape.passes} passes over {shape.row_count} x {COLUMNS} elements"
        group.say(f"{size} take {time_text(seen_ns)}")
        if 0.8 <= seen_ns / group.target_ns <= 1.25:
            break
        tried = shape
        shape = make(group, seen_ns / tried.passes / (1 if launches else tried.row_count))
        if shape in (None, tried):
            break
    if shape is None:
        group.say("this form has no such calls")
    chosen = {"shape": shape and dataclasses.asdict(shape), "pilot_ns": seen_ns}
    rows.append(options.results, {"what": "choice", **group.key(), **chosen})
    return shape


def row_of(group, shape, gain, budget_s, verdict):
    result, cost = result_of(verdict), verdict["cost"]
    names = ("speedup", "ci", "certified_speedup", "pairs", "rounds", "calls_per_block")
    names += ("time_ns", "candidate_time_ns", "delta", "clear_margin", "disturbed_share")
    names += ("why_unsettled", "note")
    return {
        "what": "verdict",
        **group.key(),
        **dataclasses.asdict(shape),
        "budget_s": budget_s,
        "gain": gain,
        "true_gain": shape.passes / (shape.passes - shape.left_out(gain)),
        "outcome": verdict["outcome"],
        **{name: result.get(name) for name in names},
        "seconds": round(cost["total_s"] - cost["build_s"], 3),
        "cost": cost,
        "seed": verdict["seed"],
        "message": verdict["message"],
        "machine": verdict["machine"]["gpu"] or verdict["machine"]["cpu"],
        "samples": verdict["samples"],
    }


def of_group(row, group, what):
    return row["what"] == what and all(row[name] == value for name, value in group.key().items())


def lacking_of(group, shape, known, options):
    """How many verdicts of each gain the known rows lack."""
    lacking = collections.Counter()
    for gain in options.gains:
        if shape.left_out(gain) is None:
            group.say(f"{shape.passes} passes have no gain of {gain} in {FIFTY}")
        else:
            lacking[gain] = options.verdicts
    for row in known:
        if of_group(row, group, "verdict") and row["budget_s"] == options.budget:
            lacking[row["gain"]] -= 1
    return +lacking


def measure(group, options):
    """Judges what the results lack of a group."""
    known = rows.read(options.results)
    choices = [row for row in known if of_group(row, group, "choice")]
    if choices:
        shape = choices[0]["shape"] and Shape(**choices[0]["shape"])
    else:
        shape = choose(group, options)
    lacking = shape and lacking_of(group, shape, known, options)
    while lacking:  # gains by turns, so that a run that is stopped has something of each
        turns = range(max(lacking.values()))
        batch = [gain for turn in turns for gain in lacking if lacking[gain] > turn]
        before = lacking.total()
        for gain, verdict in judge(group, shape, batch[: options.batch], options.budget):
            row = row_of(group, shape, gain, options.budget, verdict)
            rows.append(options.results, row)
            lacking[gain] -= 1
            seen = f"{row['outcome']} {row['speedup'] or math.nan:.3f} after {row['pairs']} pairs"
            group.say(f"true {row['true_gain']:.3f}, {seen}, {row['seconds']:.1f} s")
        if lacking.total() == before:
            group.say("given up: no verdict came")
            break
        lacking = +lacking


def median(values):
    """Of those that there are; NaN where there are none."""
    return statistics.median([value for value in values if value is not None] or [math.nan])


HEADER = ("device", "kind    ", "form  ", "  time", "budget", "  took", "  gain", "   n")
HEADER += (*OUTCOMES, "other", "ratio/true", "pairs", "seconds", "largest")


def table_text(cells):
    return " ".join(f"{cell:>{len(name)}}" for cell, name in zip(cells, HEADER))


def table_line(key, verdicts):
    """A line of the table: verdicts that differ by chance alone."""
    device, kind, form, target_ns, budget_s, true_gain = key
    counts = collections.Counter(row["outcome"] for row in verdicts)
    shares = [counts[outcome] / len(verdicts) for outcome in OUTCOMES]
    seconds = [row["seconds"] for row in verdicts]
    cells = [device, kind, form, time_text(target_ns), budget_s or "-"]
    cells += [time_text(median([row["time_ns"] for row in verdicts]))]
    cells += [f"{true_gain - 1:.1%}", len(verdicts), *[f"{share:.0%}" for share in shares]]
    ratios = [row["speedup"] for row in verdicts]
    cells += [f"{1 - sum(shares):.0%}", f"{median(ratios) / true_gain:.4f}"]
    cells += [f"{median([row['pairs'] for row in verdicts]):.0f}"]
    cells += [f"{median(seconds):.1f}", f"{max(seconds):.1f}"]
    return table_text(cells)


def summarize(path):
    lines, copies = collections.defaultdict(list), []
    names = ("device", "kind", "form", "target_ns", "budget_s", "true_gain")
    for row in rows.read(path):
        if row["what"] == "verdict":
            lines[tuple(row[name] for name in names)].append(row)
            copies += [row["outcome"] == "faster"] if row["gain"] == 0 else []
    print(table_text(HEADER))
    for key in sorted(lines, key=lambda key: (*key[:4], key[4] or 0, key[5])):
        print(table_line(key, lines[key]))
    if copies:
        low, high = clopper_pearson(sum(copies), len(copies))
        print(
            f"false wins: {sum(copies)} of {len(copies)} copies are 'faster' "
            f"(95% interval {low:.1%} to {high:.1%})"
        )


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=FORMS, default="cpu")
    parser.add_argument("--kinds", default="launches,device")
    parser.add_argument("--forms", help="default: all of the device")
    parser.add_argument("--times", default="20us,0.3ms,1ms,10ms")
    parser.add_argument("--gains", default="0,1,2,5,17", help="passes of 50 that are left out")
    parser.add_argument("--verdicts", type=int, default=20, help="of each gain, in the end")
    parser.add_argument("--budget", type=float, help="of a verdict [s] (default: assay's own)")
    parser.add_argument("--pilot-budget", type=float, default=3, help="of a pilot [s]")
    parser.add_argument("--batch", type=int, default=10, help="verdicts of one session, at most")
    parser.add_argument("--results", type=pathlib.Path, help="JSON lines, which are added to")
    parser.add_argument("--summary", type=pathlib.Path, help="print the table of such a file")
    options = parser.parse_args(arguments)
    if bool(options.results) == bool(options.summary):
        parser.error("give either --results or --summary")
    forms = FORMS[options.device]
    options.kinds = options.kinds.split(",")
    options.forms = options.forms.split(",") if options.forms else forms
    if unknown := {*options.kinds} - {*KINDS} | {*options.forms} - {*forms}:
        parser.error(f"unknown on {options.device}: {', '.join(sorted(unknown))}")
    try:
        options.times = [time_ns(text) for text in options.times.split(",")]
        options.gains = [int(gain) for gain in options.gains.split(",")]
    except (ValueError, KeyError):
        parser.error("times are such as 20us or 0.3ms, gains whole numbers")
    if not all(0 <= gain < FIFTY for gain in options.gains):
        parser.error("a gain is a number of passes of 50, from 0 to 49")
    return options


def main():
    options = options_of(sys.argv[1:])
    if options.summary:
        return summarize(options.summary)
    try:
        for kind in options.kinds:
            for form in options.forms:
                for target_ns in options.times:
                    measure(Group(options.device, kind, form, target_ns), options)
    except KeyboardInterrupt:
        print("stopped: the same call goes on", flush=True)
        return 130
    finally:
        summarize(options.results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
