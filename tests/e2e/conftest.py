"""Shared pieces of the end-to-end tests: the real binary, real PyTorch, the real sandbox."""
import json
import os
import pathlib
import subprocess
import sys
import time
import zlib

import jsonschema
import pytest

from traces import sandbox_traces

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The modules of the corpus, of garbage candidates and of the benchmarks have tests here.
sys.path[:0] = [str(ROOT / "tests" / "exploits"), str(ROOT / "tests" / "garbage")]
sys.path.append(str(ROOT / "bench"))
ASSAY = pathlib.Path(os.environ.get("ASSAY_BINARY", ROOT / "build" / "release" / "assay"))

SOFTMAX = str(ROOT / "problems" / "level1" / "softmax.py")

# Exit codes, as in the README.
GOOD, NOT_FASTER, USAGE, WRONG, BUILD_FAILED, DIED, FOUL, UNSETTLED, ENVIRONMENT = range(9)
INTERRUPTED = 130
# Where speed is not the point: a busy machine may make a fast candidate unsettled.
CORRECT = (GOOD, NOT_FASTER, UNSETTLED)

# Of a native candidate for it: what a right call does with x and y.
SOFTMAX_BODY = """
  for (int64_t r = 0; r < x.size(0); ++r) {
    const float* in = x.data() + r * x.size(1);
    float* out = y.data() + r * x.size(1);
    float most = in[0], sum = 0;
    for (int64_t c = 0; c < x.size(1); ++c) most = std::fmax(most, in[c]);
    for (int64_t c = 0; c < x.size(1); ++c) sum += out[c] = std::exp(in[c] - most);
    for (int64_t c = 0; c < x.size(1); ++c) out[c] /= sum;
  }
"""

# A candidate for ReLU whose results lie in one buffer.
RELU_REUSES = """import torch
class ModelNew(torch.nn.Module):
    result = None
    def forward(self, x):
        if self.result is None or self.result.shape != x.shape:
            self.result = torch.empty_like(x)
        return torch.clamp(x, min=0, out=self.result)
"""

# Minutes of a compiler's time, constant by constant.
SLOW_TO_COMPILE = """
#include <stddef.h>
#include <utility>
template <size_t N> constexpr long spin() {
  long s = 0;
  for (long i = 0; i < 200000; ++i) s += i * N;
  return s;
}
template <size_t N> struct Slow { static constexpr long value = spin<N>(); };
template <size_t... I> long sum(std::index_sequence<I...>) { return (Slow<I>::value + ...); }
long all = sum(std::make_index_sequence<5000>());
"""

# src/cli/exit_code.h: what each outcome ends a call with, and which of several applies.
CODE_OF = {"faster": GOOD, "correct": GOOD, "unsettled": UNSETTLED}
CODE_OF |= {"tie": NOT_FASTER, "slower": NOT_FASTER, "not_faster": NOT_FASTER}
CODE_OF |= {"wrong": WRONG, "weights_differ": WRONG, "build_failed": BUILD_FAILED, "foul": FOUL}
CODE_OF |= {"crashed": DIED, "timed_out": DIED, "out_of_memory": DIED}
GRAVEST_FIRST = (FOUL, DIED, BUILD_FAILED, WRONG, UNSETTLED, NOT_FASTER, GOOD)


def pytest_addoption(parser):
    group = parser.getgroup("assay")
    group.addoption("--all", action="store_true", help="thorough tests, too")
    group.addoption("--share", default="", help="K/N: a share of the thorough tests, K of 0 to N-1")
    group.addoption("--touched", default="", help="A,B: thorough tests of these names, too")
    group.addoption(
        "--measuring",
        choices=("only", "none"),
        help="the tests marked 'alone' or 'thorough', or all others: those may run side by side",
    )


def share_of(text):
    """K and N of 'K/N'."""
    try:
        part, parts = map(int, text.split("/"))
    except ValueError:
        part, parts = 1, 0
    if not 0 <= part < parts:
        raise pytest.UsageError(f"--share takes K/N with K of 0 to N-1, not '{text}'")
    return part, parts


def is_chosen(item, config):
    """Whether a test runs: a thorough one needs to be asked for."""
    if item.get_closest_marker("thorough") is None or config.option.all:
        return True
    touched = set(config.option.touched.split(",")) - {""}
    if hasattr(item, "callspec") and touched & set(item.callspec.id.split(",")):
        return True
    if not config.option.share:
        return False
    part, parts = share_of(config.option.share)
    return zlib.crc32(item.nodeid.encode()) % parts == part


def runs_alone(item):
    """Whether others beside it may change its result. Of thorough tests nobody knows: all do."""
    marked = any(item.get_closest_marker(name) for name in ("alone", "thorough"))
    return marked or "leftovers" in item.fixturenames


def pytest_collection_modifyitems(config, items):
    option = config.option
    chosen = items
    if not (option.keyword or option.markexpr or any("::" in name for name in config.args)):
        chosen = [item for item in items if is_chosen(item, config)]  # else they are named
    if option.measuring:
        alone = option.measuring == "only"
        chosen = [item for item in chosen if runs_alone(item) == alone]
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = chosen


def chosen_parameters(request, name):
    """The values of a parameter among those tests of the calling test's function that run in this
    session: what one call can judge for all of them.
    """
    function = request.node.originalname
    same = [item for item in request.session.items if item.originalname == function]
    return [item.callspec.params[name] for item in same if item.path == request.node.path]


def fits(document, schema):
    """Fails unless the document is as docs/SCHEMA.schema.json says."""
    text = (ROOT / "docs" / f"{schema}.schema.json").read_text()
    jsonschema.validate(document, json.loads(text))


class Run:
    """One finished call of assay."""

    def __init__(self, process):
        self.code = process.returncode
        self.out = process.stdout
        self.err = process.stderr

    @property
    def verdict(self):
        return json.loads(self.out)

    def __repr__(self):
        text = f"exit {self.code}\nstdout: {self.out[-3000:]}\nstderr: {self.err[-3000:]}"
        try:
            # pytest shortens long texts in the middle.
            return f"{self.verdict['outcome']}: {self.verdict['message']}\n{text}"
        except (ValueError, TypeError, KeyError):
            return text


def spans(trace):
    """The names of all spans of a trace (ASSAY_TRACE), in the order in which they ended."""
    return [json.loads(line.rstrip(","))["name"] for line in trace.read_text().splitlines()[1:]]


class Assay:
    def __init__(self, home):
        self.home = home
        self.environment = dict(
            os.environ,
            XDG_CACHE_HOME=str(home / "cache"),
            XDG_STATE_HOME=str(home / "state"),
            XDG_DATA_HOME=str(home / "data"),
            XDG_CONFIG_HOME=str(home / "config"),
        )

    def __call__(self, *arguments, timeout=120, **environment):
        process = subprocess.run(
            [str(ASSAY), *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            env=dict(self.environment, **environment),
        )
        return Run(process)

    def start(self, *arguments, **environment):
        """A process in a session of its own, as a terminal has one: Ctrl-C there is os.killpg."""
        return subprocess.Popen(
            [str(ASSAY), *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.home,
            env=dict(self.environment, **environment),
            start_new_session=True,
        )

    def judge(self, problem, *arguments, **keywords):
        """Few tests ask for more than a verdict: on a busy machine most would take all of the
        minute that is the default for speed.
        """
        budget = [] if "--budget" in arguments else ["--budget", "8"]
        return self("judge", problem, *arguments, *budget, "--json", **keywords)


@pytest.fixture(scope="session")
def judge_many(tmp_path_factory):
    """judge_many(problem, candidates, options) gives the verdicts on candidates, in their order, by
    one call whose exit code must be that of the gravest. Tests whose options are the same share a
    call, and so one import of PyTorch. A worker that stays warm for the session can take the place
    of the call.
    """
    assay = Assay(tmp_path_factory.mktemp("session"))

    def judge(problem, candidates, options=()):
        run = assay.judge(problem, *candidates, *options, timeout=120 + 10 * len(candidates))
        assert run.out, run
        verdicts = run.verdict if len(candidates) > 1 else [run.verdict]
        assert len(verdicts) == len(candidates), run
        codes = {CODE_OF[verdict["outcome"]] for verdict in verdicts}
        assert run.code == next(code for code in GRAVEST_FIRST if code in codes), run
        return verdicts

    return judge


@pytest.fixture
def assay(tmp_path):
    return Assay(tmp_path)


@pytest.fixture
def write(tmp_path):
    """Writes a file into the test's folder and gives its path."""

    def write_file(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write_file


@pytest.fixture
def leftovers():
    """What the test's judgements left behind: nothing may be there that was not there before.
    `but_below`: a folder that is not looked at.
    """
    before = sandbox_traces()

    def new_traces(but_below=None):
        # The kernel ends the last process of a killed sandbox a moment after its parent is told.
        for _ in range(50):
            new = sandbox_traces() - before
            if but_below is not None:
                new = {trace for trace in new if not trace.startswith(but_below)}
            if not new:
                break
            time.sleep(0.1)
        return new

    return new_traces
