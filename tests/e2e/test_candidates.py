"""Every way in which a candidate can go wrong ends in the right outcome and exit code, with one
clear message.
"""
import textwrap

import pytest

from conftest import BUILD_FAILED, CODE_OF, CORRECT, DIED, FOUL, SLOW_TO_COMPILE, SOFTMAX
from conftest import USAGE, WRONG, chosen_parameters

HEAD = """
#include <assay/kernel.h>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <vector>
#include <unistd.h>
#include <sys/mman.h>
static void softmax(const float* x, float* y, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r) {
    float m = x[r * columns], s = 0;
    for (int64_t c = 0; c < columns; ++c) m = std::fmax(m, x[r * columns + c]);
    for (int64_t c = 0; c < columns; ++c)
      s += (y[r * columns + c] = std::exp(x[r * columns + c] - m));
    for (int64_t c = 0; c < columns; ++c) y[r * columns + c] /= s;
  }
}
#define RIGHT softmax(x.data(), y.data(), x.size(0), x.size(1))
"""


def kernel(body, before=""):
    return (
        HEAD
        + before
        + "ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<float, 2> y) {"
        + body
        + "}\n"
    )


# name: (source, exit code, outcome, text that the message or the hint must have)
CANDIDATES = {
    "right": (kernel("RIGHT;"), CORRECT, None, ""),
    "empty": ("", BUILD_FAILED, "build_failed", ""),
    "no_entry": (HEAD + "int main() {}", BUILD_FAILED, "build_failed", "ASSAY_KERNEL"),
    "does_not_compile": (
        kernel("RIGHT; return nonsense;"),
        BUILD_FAILED,
        "build_failed",
        "nonsense",
    ),
    "wall_of_templates": (
        kernel('std::vector<std::vector<int>> v; v.push_back("x");'),
        BUILD_FAILED,
        "build_failed",
        "line",
    ),
    "missing_include": (
        "#include <no/such/header.h>\n" + kernel("RIGHT;"),
        BUILD_FAILED,
        "build_failed",
        "no/such/header.h",
    ),
    "undefined_symbol": (
        kernel("extern void nowhere(); nowhere();"),
        BUILD_FAILED,
        "build_failed",
        "nowhere",
    ),
    "bad_flag": (
        "//! flags -fplugin=/tmp/x.so\n" + kernel("RIGHT;"),
        BUILD_FAILED,
        "build_failed",
        "-fplugin",
    ),
    "compiles_to_gigabytes": (
        kernel("RIGHT;", "char large[3L << 30] = {1};"),
        BUILD_FAILED,
        "build_failed",
        "size limit",
    ),
    "compiler_takes_gigabytes": (
        kernel(
            "RIGHT;",
            "#include <utility>\n"
            "template <size_t... I> long sum(std::index_sequence<I...>) { return (long(I) + ...); }"
            "long all = sum(std::make_index_sequence<200000000>());",
        ),
        BUILD_FAILED,
        "build_failed",
        "memory",
    ),
    "compiles_too_long": (
        kernel("RIGHT;", SLOW_TO_COMPILE),
        BUILD_FAILED,
        "build_failed",
        "longer than 3 s",
    ),
    "wrong_arity": (
        HEAD + "ASSAY_KERNEL(assay::Tensor<const float, 2> x) {}",
        BUILD_FAILED,
        "build_failed",
        "ASSAY_KERNEL(",
    ),
    "wrong_dtype": (
        HEAD + "ASSAY_KERNEL(assay::Tensor<const double, 2> x, assay::Tensor<double, 2> y) {}",
        BUILD_FAILED,
        "build_failed",
        "float",
    ),
    "segfault": (kernel("*(volatile int*)16 = 1;"), DIED, "crashed", "SEGV"),
    "abort": (kernel("std::abort();"), DIED, "crashed", "ABRT"),
    "exits_early": (
        kernel('std::printf("PASS\\n"); std::fflush(stdout); _exit(0);'),
        DIED,
        "crashed",
        "exit",
    ),
    "hangs": (kernel("for (volatile int i = 0;; ++i) {}"), DIED, "timed_out", ""),
    "sleeps_for_ever": (kernel("for (;;) pause();"), DIED, "timed_out", ""),
    "allocates_everything": (
        kernel(
            "for (;;) { char* p = (char*)mmap(0, 1 << 26, PROT_READ | PROT_WRITE, "
            "MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); if (p == MAP_FAILED) std::abort(); "
            "for (int i = 0; i < (1 << 26); i += 4096) p[i] = 1; }"
        ),
        DIED,
        "out_of_memory",
        "memory",
    ),
    "prints_megabytes": (
        kernel(
            "for (int i = 0; i < 20000; ++i) "
            'std::puts("a line of output that nobody asked for, over and over again"); RIGHT;'
        ),
        CORRECT,
        None,
        "",
    ),
    "writes_out_of_bounds": (
        kernel("RIGHT; y.data()[x.size(0) * x.size(1)] = 1;"),
        WRONG,
        "wrong",
        "out of bounds",
    ),
    "writes_before": (kernel("RIGHT; y.data()[-1] = 1;"), WRONG, "wrong", "out of bounds"),
    "writes_to_its_input": (
        kernel("RIGHT; const_cast<float*>(x.data())[0] = 1;"),
        DIED,
        "crashed",
        "input x",
    ),
    "never_writes": (kernel(""), WRONG, "wrong", "never written"),
    "forks": (kernel("if (fork() == 0) _exit(0); RIGHT;"), FOUL, "foul", "process"),
    "constructor_crashes": (
        kernel("RIGHT;", "struct C { C() { *(volatile int*)16 = 1; } } c;"),
        DIED,
        "crashed",
        "SEGV",
    ),
    "constructor_hangs": (
        kernel("RIGHT;", "struct C { C() { for (volatile int i = 0;; ++i) {} } } c;"),
        DIED,
        "timed_out",
        "",
    ),
    "throws": (kernel("throw 1;"), DIED, "crashed", ""),
    "zeros": (
        kernel("for (int64_t i = 0; i < x.size(0) * x.size(1); ++i) y.data()[i] = 0;"),
        WRONG,
        "wrong",
        "zero",
    ),
    "nan": (
        kernel("for (int64_t i = 0; i < x.size(0) * x.size(1); ++i) y.data()[i] = NAN;"),
        WRONG,
        "wrong",
        "NaN",
    ),
    "last_column": (
        kernel("RIGHT; for (int64_t r = 0; r < x.size(0); ++r) y(r, x.size(1) - 1) = 0;"),
        WRONG,
        "wrong",
        "last",
    ),
    "no_maximum": (
        kernel(
            "for (int64_t r = 0; r < x.size(0); ++r) { float s = 0; "
            "for (int64_t c = 0; c < x.size(1); ++c) s += (y(r, c) = std::exp(x(r, c)));"
            "for (int64_t c = 0; c < x.size(1); ++c) y(r, c) /= s; }"
        ),
        WRONG,
        "wrong",
        "",
    ),
}

OPTIONS = {
    "hangs": ("--timeout", "1"),
    "sleeps_for_ever": ("--timeout", "1"),
    "constructor_hangs": ("--timeout", "1"),
    "compiles_too_long": ("--build-timeout", "3"),
    "allocates_everything": ("--memory", "512M", "--timeout", "60"),
}


def holds_as_expected(name, verdict):
    _, code, outcome, text = CANDIDATES[name]
    assert CODE_OF[verdict["outcome"]] in (code if isinstance(code, tuple) else (code,)), verdict
    if name == "allocates_everything" and "memory" not in verdict["machine"]["isolation"]:
        outcome = "crashed"  # a limit on addresses alone makes malloc say no
    if outcome is not None:
        assert verdict["outcome"] == outcome, verdict
    said = verdict["message"] + str((verdict["correctness"] or {}).get("hint"))
    assert text in said, verdict
    assert len(verdict["message"]) < 2000, "one clear message, not a wall"


@pytest.fixture(scope="module")
def judged():
    """Name -> verdict, of the candidates that this session has judged."""
    return {}


@pytest.mark.parametrize("name", CANDIDATES)
def test_outcome(judge_many, write, leftovers, judged, request, name):
    """Those with the same options are judged by one call, side by side with all the others."""
    if name not in judged:
        options = OPTIONS.get(name, ())
        names = [other for other in chosen_parameters(request, "name") if other not in judged]
        names = [other for other in names if OPTIONS.get(other, ()) == options]
        paths = [write(f"{other}.cpp", CANDIDATES[other][0]) for other in names]
        options = ["--size", "tiny", "--correctness-only", *options]
        judged.update(zip(names, judge_many(SOFTMAX, paths, options)))
        assert leftovers() == set()
    holds_as_expected(name, judged[name])


@pytest.mark.thorough
@pytest.mark.parametrize("name", CANDIDATES)
def test_alone_it_ends_in_the_exit_code_of_its_outcome(assay, write, leftovers, name):
    """And whatever passes gate 1 is timed."""
    path = write(f"{name}.cpp", CANDIDATES[name][0])
    run = assay.judge(SOFTMAX, path, "--size", "tiny", *OPTIONS.get(name, ()))
    assert run.code == CODE_OF[run.verdict["outcome"]], run
    holds_as_expected(name, run.verdict)
    assert leftovers() == set()


LACKS_MEMORY = """
import torch
class ModelNew(torch.nn.Module):
    calls = 0
    def forward(self, x):
        self.calls += 1
        if self.calls > {calls}:
            torch.empty(1 << 50)
        return torch.softmax(x, dim=-1)
"""
# What its host says of a call is in memory that is the candidate's, too.
CLAIMS_TO = """
import sys, torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        frame = sys._getframe()
        while frame is not None:
            said = frame.f_locals.get("first_failure")
            if said is not None:
                said._say("forward fails: out of memory")
            frame = frame.f_back
        return torch.zeros_like(x)
"""


@pytest.mark.parametrize(
    "calls, where",
    [
        (0, "forward fails"),
        (20, "in a timed call"),  # a host of gate 1 makes fewer
    ],
    ids=["first call", "timed call"],
)
def test_python_that_runs_out_of_memory_is_not_called_wrong(assay, write, calls, where):
    """It was `wrong`, though it had given no result."""
    path = write("lacks.py", LACKS_MEMORY.format(calls=calls))
    run = assay.judge(SOFTMAX, path, "--size", "tiny")
    assert run.code == DIED, run
    assert run.verdict["outcome"] == "out_of_memory", run
    assert where in run.verdict["message"], run
    assert "allocate" in run.verdict["message"], run
    # What was never computed has no error.
    assert not run.verdict["correctness"]["passed"], run
    assert run.verdict["correctness"]["error_ratio"] < 1, run


def test_who_says_that_memory_is_short_and_gives_something_is_wrong(assay, write):
    """A caught cheat would have been an innocent one, and judged once more on a GPU."""
    run = assay.judge(SOFTMAX, write("claims.py", CLAIMS_TO), "--size", "tiny")
    assert run.code == WRONG, run
    assert run.verdict["outcome"] == "wrong", run
    assert "out of memory" in run.verdict["message"], run


def test_binary_file(assay, write):
    run = assay.judge(SOFTMAX, write("binary.cpp", bytes(range(256)) * 10), "--size", "tiny")
    assert run.code == BUILD_FAILED, run


def test_folder_and_missing_and_unknown_suffix(assay, write, tmp_path):
    for path in (str(tmp_path), str(tmp_path / "missing.cpp"), write("kernel.txt", "x")):
        run = assay.judge(SOFTMAX, path, "--size", "tiny")
        assert run.code == USAGE, run
        assert run.err.startswith("assay: ") and path in run.err, run


def test_several_candidates_keep_their_order_and_the_gravest_code(assay, write):
    names = ["right", "zeros", "does_not_compile"]
    paths = [write(f"{name}.cpp", CANDIDATES[name][0]) for name in names]
    run = assay.judge(SOFTMAX, *paths, "--size", "tiny", "--correctness-only")
    assert run.code == BUILD_FAILED, run
    verdicts = run.verdict
    assert [v["candidate"]["path"] for v in verdicts] == paths
    assert verdicts[1]["outcome"] == "wrong" and verdicts[2]["outcome"] == "build_failed"


def test_the_same_file_twice_is_built_once_and_judged_twice(assay, write):
    paths = [write("zeros.cpp", CANDIDATES["zeros"][0]), write("right.cpp", CANDIDATES["right"][0])]
    copy = write("zeros_too.cpp", CANDIDATES["zeros"][0])
    options = ["--size", "tiny", "--correctness-only"]
    first, right, second, copied = assay.judge(SOFTMAX, *paths, paths[0], copy, *options).verdict
    assert [v["outcome"] for v in (first, second, copied)] == ["wrong"] * 3
    assert first["cost"]["build_s"] > 0 and right["correctness"]["passed"]
    # Not from the cache, which takes its time to look.
    assert second["cost"]["build_cached"] and second["cost"]["build_s"] == 0
    assert first["id"] != second["id"] and first["candidate"] == second["candidate"]
    assert copied["cost"]["build_cached"] and copied["candidate"]["path"] == copy


def inline_extension(body):
    return f"""
import torch
from torch.utils.cpp_extension import load_inline
SOURCE = "torch::Tensor rows(torch::Tensor x) {{ return {body}; }}"
module = load_inline(name="rows", cpp_sources=SOURCE, functions=["rows"])
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return module.rows(x)
"""


def test_an_extension_is_built_with_a_part_of_the_headers(assay, write):
    path = write("inline.py", inline_extension("at::softmax(x, 1)"))
    verdict = assay.judge(SOFTMAX, path, "--size", "tiny", "--correctness-only").verdict
    assert verdict["outcome"] == "correct" and verdict["toolchain"]["headers"] == "lean"


def test_an_extension_may_have_a_folder_of_its_own_below_the_home_folder(assay, write):
    # As published kernels have it; a host that did not find it there tried to compile.
    text = inline_extension("at::softmax(x, 1)").replace(
        "module = load_inline(",
        "import pathlib\n"
        'own = pathlib.Path.home() / ".cache" / "rows_own"\n'
        "own.mkdir(parents=True, exist_ok=True)\n"
        "module = load_inline(build_directory=str(own), ",
    )
    path = write("own_folder.py", text)
    verdict = assay.judge(SOFTMAX, path, "--size", "tiny", "--correctness-only").verdict
    assert verdict["outcome"] == "correct", verdict["message"]


@pytest.mark.thorough
def test_an_extension_that_needs_all_headers_is_built_with_them(assay, write):
    rare = inline_extension("at::special_softmax(x, 1, c10::nullopt)")
    wrong = inline_extension("at::no_such_operator(x)")
    paths = [write("rare.py", rare), write("wrong.py", wrong)]
    options = ["--size", "tiny", "--correctness-only"]
    found, failed = assay.judge(SOFTMAX, *paths, *options, timeout=280).verdict
    assert found["outcome"] == "correct" and found["toolchain"]["headers"] == "full"
    assert failed["outcome"] == "build_failed" and "no_such_operator" in failed["message"]
    assert "headers" not in failed["toolchain"]
    again = assay.judge(SOFTMAX, paths[0], *options).verdict
    assert again["cost"]["build_cached"] and again["toolchain"]["headers"] == "full"


def test_the_best_baseline_is_the_hardest_to_beat(assay, write):
    right = write("right.cpp", CANDIDATES["right"][0])
    verdict = assay.judge(SOFTMAX, right, "--size", "tiny", "--baseline", "best").verdict
    speed = verdict["speed"]
    assert speed["headline"] == "best"
    others = {name: one for name, one in speed["baselines"].items() if name != "best"}
    assert "eager" in others, "the one that cannot be left out"
    hardest = min(others, key=lambda name: others[name]["speedup"])
    best = speed["baselines"]["best"]
    assert best["speedup"] == others[hardest]["speedup"] and best["note"].startswith(hardest)
    # Whatever this PyTorch cannot compile is named.
    for name in ("compiled", "compiled-reduce-overhead", "compiled-max-autotune"):
        assert name in others or name in best["note"].partition("left out")[0], best["note"]
    assert verdict["outcome"] == best["decision"]
    run = assay.judge(SOFTMAX, right, "--size", "tiny", "--baseline", "best,eager")
    assert run.code == USAGE and "best alone" in run.err, run


C_SOURCE = textwrap.dedent(
    """
    #include <assay/kernel.h>
    #include <math.h>
    ASSAY_KERNEL_C(ASSAY_TENSOR(const float, 2, x), ASSAY_TENSOR(float, 2, y)) {
      const int64_t columns = x_size[1];
      for (int64_t r = 0; r < x_size[0]; ++r) {
        float m = x[r * columns], s = 0;
        for (int64_t c = 0; c < columns; ++c) m = fmaxf(m, x[r * columns + c]);
        for (int64_t c = 0; c < columns; ++c)
          s += (y[r * columns + c] = expf(x[r * columns + c] - m));
        for (int64_t c = 0; c < columns; ++c) y[r * columns + c] /= s;
      }
    }
    """
)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_c_candidate(assay, write, compiler):
    source = write("kernel.c", f"//! compiler {compiler}\n" + C_SOURCE)
    run = assay.judge(SOFTMAX, source, "--size", "tiny", "--correctness-only")
    assert run.verdict["correctness"]["passed"], run
    assert run.verdict["candidate"]["language"] == "c"


def test_openmp_and_clang(assay, write):
    source = "//! compiler clang++\n//! flags -O2 -ffast-math\n" + kernel("RIGHT;")
    options = ["--size", "tiny", "--correctness-only"]
    run = assay.judge(SOFTMAX, write("kernel.cpp", source), *options)
    assert run.verdict["correctness"]["passed"], run
    source = "//! flags -fopenmp\n" + kernel(
        "\n#pragma omp parallel for\n"
        "for (int64_t r = 0; r < x.size(0); ++r) softmax(&x(r, 0), &y(r, 0), 1, x.size(1));"
    )
    run = assay.judge(SOFTMAX, write("kernel2.cpp", source), *options, "--threads", "2")
    assert run.verdict["correctness"]["passed"], run
    assert run.verdict["machine"]["threads"] == 2
