"""Each defence is needed: where it is taken away, at least one exploit gets through. The program
that can be weakened is built for these tests alone; the one that people use refuses.
"""
import json
import os
import subprocess

import pytest

from conftest import ASSAY, ROOT, SOFTMAX, USAGE

# An exploit that waits for its moment may miss it beside others.
pytestmark = pytest.mark.alone
WEAKENED = ASSAY.with_name("assay-weakened")
EXPLOITS = ROOT / "tests" / "exploits"

HEAD = """
#include <assay/kernel.h>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <map>
#include <thread>
#include <vector>
#include <sys/wait.h>
#include <unistd.h>
static void softmax(const float* x, float* y, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = x + r * columns;
    float* out = y + r * columns;
    float largest = in[0], sum = 0;
    for (int64_t c = 0; c < columns; ++c)
      largest = std::isnan(in[c]) ? in[c] : std::fmax(largest, in[c]);
    for (int64_t c = 0; c < columns; ++c) sum += out[c] = std::exp(in[c] - largest);
    for (int64_t c = 0; c < columns; ++c) out[c] /= sum;
  }
}
%s
ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<float, 2> y) { %s }
"""
RIGHT = "softmax(x.data(), y.data(), x.size(0), x.size(1));"


def softmax_kernel(body, before=""):
    return HEAD % (before, body)


UPPER_TRIANGLE = """
import torch, torch.nn as nn
class Model(nn.Module):
    def forward(self, x):
        return torch.triu(x)
def get_inputs():
    return [torch.randn(256, 256)]
def get_init_inputs():
    return []
"""
ALL_ONES = UPPER_TRIANGLE.replace("torch.triu(x)", "torch.ones_like(x)")

# Works in a thread of its own on whatever appears in the slots that it has been called with. Thread
# and call each say that they are there before they look for the other, so that one is alone with
# the slots: an exploit with a race fails by itself now and then, which is no defence's work.
WORKS_AHEAD = """
struct Slot { const float* x; int64_t rows, columns; std::vector<float> done; uint64_t key; };
static std::map<const float*, Slot> slots;
static std::atomic<bool> busy{false};
static std::atomic<int> ready{0};
static uint64_t key_of(const float* x, int64_t count) {
  uint64_t key = 7;
  uint32_t bits;
  // The last ones, too: they come last as a slot is filled.
  for (int64_t i = 0; i < 65; ++i) {
    memcpy(&bits, x + i * (count - 1) / 64, 4);
    key = key * 0x9E3779B97F4A7C15 + bits;
  }
  return key;
}
static void work() {
  for (;;) {
    ready.store(1);
    if (busy.load()) {
      ready.store(0);
      std::this_thread::yield();
      continue;
    }
    for (auto& [x, slot] : slots) {
      if (busy.load()) break;
      const uint64_t key = key_of(x, slot.rows * slot.columns);
      if (key == slot.key) continue;
      softmax(x, slot.done.data(), slot.rows, slot.columns);
      // The values may have been half of the next ones.
      if (key == key_of(x, slot.rows * slot.columns)) slot.key = key;
    }
    ready.store(0);
  }
}
"""
ASKS_THE_THREAD = """
busy.store(true);
while (ready.load() == 1) std::this_thread::yield();
static bool started = (std::thread(work).detach(), true);
(void)started;
Slot& slot = slots[x.data()];
const int64_t count = x.size(0) * x.size(1);
const uint64_t key = key_of(x.data(), count);
if (slot.x != nullptr && slot.key == key) {
  memcpy(y.data(), slot.done.data(), 4 * count);
} else {
  softmax(x.data(), y.data(), x.size(0), x.size(1));
  if (slot.x == nullptr) slot = {x.data(), x.size(0), x.size(1), std::vector<float>(count), key};
  memcpy(slot.done.data(), y.data(), 4 * count);
  slot.key = key;
}
busy.store(false);
"""

WITHOUT_MAXIMUM = RIGHT.replace("softmax(", "overflowing(")
OVERFLOWING = """
static void overflowing(const float* x, float* y, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r) {
    float sum = 0;
    for (int64_t c = r * columns; c < (r + 1) * columns; ++c) sum += y[c] = std::exp(x[c]);
    for (int64_t c = r * columns; c < (r + 1) * columns; ++c) y[c] /= sum;
  }
}
"""

GATE_1 = ["--correctness-only"]
TINY = ["--size", "tiny"]
SPEED = ["--budget", "8"]


def corpus(name):
    """An exploit's file, and the problem and options that its header asks for."""
    path = EXPLOITS / "corpus" / name
    header = {}
    for line in path.read_text().splitlines():
        key, colon, value = line.lstrip("/# ").partition(":")
        if colon and key in ("problem", "size", "set"):
            header[key] = value.strip()
    problem = header["problem"]
    if problem.endswith(".py"):
        problem = str(EXPLOITS / problem)
    options = ["--size", header["size"]] if "size" in header else []
    for setting in header.get("set", "").split(","):
        options += ["--set", setting.strip()] if setting.strip() else []
    return problem, path, options


def inline(source, problem="softmax", options=TINY):
    return problem, source, options


# What is taken away: the exploit, and further options of the judgement.
GETS_THROUGH = {
    "poison": (
        inline(
            softmax_kernel(
                "for (int64_t i = 0; i < x.size(0); ++i) for (int64_t j = i; j < x.size(1); ++j) "
                "y(i, j) = x(i, j);"
            ),
            UPPER_TRIANGLE,
            [],
        ),
        GATE_1,
    ),
    "guards": (
        inline(softmax_kernel(RIGHT + "y.data()[x.size(0) * x.size(1) + 3] = 1;")),
        GATE_1,
    ),
    "timed-checks": (
        inline(softmax_kernel("static int calls = 0; if (++calls < 60) { " + RIGHT + " }")),
        SPEED,
    ),
    "varied-draws": (inline(softmax_kernel(WITHOUT_MAXIMUM, OVERFLOWING)), GATE_1),
    "timed-draws": (corpus("16_unstable_when_timed.cpp"), SPEED),
    "error-bounds": (
        inline(
            softmax_kernel(
                RIGHT + "auto* bits = reinterpret_cast<uint32_t*>(y.data());"
                "for (int64_t i = 0; i < x.size(0) * x.size(1); ++i) bits[i] &= 0xFFFFE000;"
            )
        ),
        GATE_1,
    ),
    "ragged-sizes": (corpus("12_one_shape.cpp"), GATE_1),
    "random-weights": (corpus("06_skips_new_weights.cpp"), GATE_1),
    "varying-weights": (corpus("20_repacked_weights.cpp"), GATE_1),
    "late-writes": (corpus("24_copies_in_the_kernel.cpp"), GATE_1),
    "read-only-inputs": (
        inline(softmax_kernel(RIGHT + "const_cast<float*>(x.data())[0] = 0;")),
        GATE_1,
    ),
    "lockdown": (
        inline(
            softmax_kernel(
                RIGHT + "pid_t child = fork(); if (child == 0) _exit(0); "
                "if (child < 0) y(0, 0) = 7; else waitpid(child, nullptr, 0);"
            )
        ),
        GATE_1,
    ),
    # One pass over the weights serves several calls only if they have the same values.
    "steps": (corpus("22_super_batch.cpp"), [*SPEED, "--weights", "constant"]),
    "libraries": (corpus("45_openblas.cpp"), SPEED),
}

# Where an exploit is right in any case, what it gains is what is taken from it: the least ratio of
# its speedups without and with the defence. Two names stand for defences that back each other up:
# either alone suffices.
GAINS = {
    "fresh-values,steps": (corpus("18_value_cache.cpp"), 1.5),
    "lockdown": (corpus("49_timers_fire_while_it_sleeps.cpp"), 1.4),
    "freeze,sleep-proof": (inline(softmax_kernel(ASKS_THE_THREAD, WORKS_AHEAD)), 1.5),
    "head-start": (corpus("28_head_start.cpp"), 3),
    "head-start,long-blocks": (corpus("48_works_while_waking.cpp"), 3),
}


# No exploit of the corpus gains without these: others stand behind them.
COVERED = {"waiting-hosts", "left-results"}


@pytest.fixture
def judge(assay, write):
    """Judges an exploit without some defences, or with all of them (None)."""

    def run(exploit, options, without):
        problem, source, problem_options = exploit
        if isinstance(source, str):
            source = write("exploit.cpp", source)
        if "\n" in problem:
            problem = write("problem.py", problem)
        environment = dict(assay.environment, XDG_CACHE_HOME="/tmp/assay-defences-cache")
        if without:
            environment["ASSAY_WEAKEN"] = without
        process = subprocess.run(
            [str(WEAKENED if without else ASSAY), "judge", problem, str(source), "--json"]
            + ["--no-save", "-q", *problem_options, *options],
            capture_output=True,
            text=True,
            timeout=180,
            env=environment,
            cwd=assay.home,
        )
        assert process.stdout, process.stderr
        return json.loads(process.stdout)

    return run


def was_too_noisy(verdict):
    """Whether a verdict on speed ran out of its time on a busy machine: it shows nothing."""
    ends = ("too noisy", "the budget ended")
    return verdict["speed"] is not None and any(end in verdict["message"] for end in ends)


def got_through(verdict):
    passed = verdict["correctness"] is not None and verdict["correctness"]["passed"]
    # One that is right at the size that was asked for may crash at another one.
    return passed and verdict["foul"] is None and verdict["outcome"] != "crashed"


QUICK = {name for name, (_, options) in GETS_THROUGH.items() if options == GATE_1}


@pytest.mark.parametrize(
    "defence",
    [
        pytest.param(name, marks=[] if name in QUICK else pytest.mark.thorough)
        for name in GETS_THROUGH
    ],
)
def test_without_it_an_exploit_gets_through(defence, judge):
    exploit, options = GETS_THROUGH[defence]
    for _ in range(3):
        caught = judge(exploit, options, None)
        if not was_too_noisy(caught):
            break
    assert not got_through(caught), (caught["outcome"], caught["message"])
    for _ in range(3):  # a thread may be late on a busy machine
        believed = judge(exploit, options, defence)
        if got_through(believed):
            return
    assert got_through(believed), (believed["outcome"], believed["message"])


def speedup(verdict):
    """0 where there is none."""
    return verdict["speed"]["baselines"]["eager"]["speedup"] if verdict["speed"] else 0


@pytest.mark.thorough
@pytest.mark.parametrize("defence", GAINS)
def test_without_it_an_exploit_gains(defence, judge):
    exploit, ratio = GAINS[defence]
    # A busy machine may hide a gain once or twice.
    for _ in range(10):
        honest = speedup(judge(exploit, SPEED, None))
        gained = speedup(judge(exploit, SPEED, defence))
        if gained > ratio * honest:
            return
    assert gained > ratio * honest, (honest, gained)


def test_a_host_that_works_while_it_should_be_stopped_is_seen(judge):
    """Where SIGSTOP did not hold, the CPU clock tells."""
    exploit = GAINS["freeze,sleep-proof"][0]
    verdict = judge(exploit, SPEED, "freeze")
    assert (verdict["outcome"], verdict["foul"]["rule"]) == ("foul", "ran-while-asleep")


@pytest.mark.thorough
def test_where_results_are_copied_a_win_that_a_saved_copy_explains_says_so(judge):
    """Where a host's memory cannot be read both sides copy."""
    exploit = ("softmax", EXPLOITS / "gpu" / "corpus" / "30_patched_copy.py", TINY)
    verdict = judge(exploit, ["--budget", "40"], "left-results")
    note = verdict["speed"]["baselines"]["eager"]["note"] or ""
    assert ("leave out the copy" in note) == (verdict["outcome"] == "faster"), verdict


@pytest.mark.thorough
def test_a_problem_that_a_constant_solves_has_no_winner(judge):
    ones = inline(
        softmax_kernel("std::fill(y.data(), y.data() + x.size(0) * x.size(1), 1.0f);"),
        ALL_ONES,
        [],
    )
    verdict = judge(ones, SPEED, None)
    assert verdict["outcome"] == "unsettled" and "means nothing" in verdict["message"]
    verdict = judge(ones, SPEED, "degenerate")
    assert verdict["speed"] is not None and "means nothing" not in verdict["message"]


def test_the_program_that_people_use_cannot_be_weakened(assay):
    run = assay("judge", SOFTMAX, "any.cpp", ASSAY_WEAKEN="poison")
    assert run.code == USAGE and "cannot be taken away" in run.err
    process = subprocess.run(
        [str(WEAKENED), "--version"],
        capture_output=True,
        text=True,
        env=dict(os.environ, ASSAY_WEAKEN="poison,nonsense"),
    )
    assert process.returncode == USAGE and "nonsense" in process.stderr


def test_every_defence_is_tried():
    source = (ROOT / "src" / "base" / "defence_names.cc").read_text()
    names = {
        line.split('"')[1] for line in source.splitlines() if "Defence::" in line and '"' in line
    }
    tried = {name for key in (*GETS_THROUGH, *GAINS, "degenerate") for name in key.split(",")}
    assert names == tried | COVERED and not tried & COVERED
