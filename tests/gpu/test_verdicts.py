"""Verdicts on a real GPU, end to end: the device form and candidates in Python, right ones, wrong
ones, and those that break the device. scripts/test-gpu runs them.
"""
import pytest

from conftest import ROOT, assert_right

HEAD = """//! dim      rows = x.size(0)
//! constant COLUMNS = x.size(1)
//! tune     BLOCK = 256
//! launch   rows_of grid=(rows) block=(BLOCK) args=(%s)
__device__ float Together(float value, bool sum) {
  __shared__ float part[32];
  for (int step = 16; step > 0; step /= 2) {
    const float other = __shfl_xor_sync(~0u, value, step);
    value = sum ? value + other : fmaxf(value, other);
  }
  __syncthreads();
  if (threadIdx.x %% 32 == 0) part[threadIdx.x / 32] = value;
  __syncthreads();
  value = part[0];
  for (int i = 1; i < BLOCK / 32; ++i) value = sum ? value + part[i] : fmaxf(value, part[i]);
  return value;
}
"""
SOFTMAX = (
    HEAD % "x, out"
    + """
extern "C" __global__ void rows_of(const float* x, float* out) {
  const long long begin = (long long)blockIdx.x * COLUMNS;
  float largest = -__int_as_float(0x7f800000), sum = 0;
  for (int i = threadIdx.x; i < COLUMNS; i += BLOCK) largest = fmaxf(largest, x[begin + i]);
  largest = Together(largest, false);
  for (int i = threadIdx.x; i < COLUMNS; i += BLOCK) sum += expf(x[begin + i] - largest);
  sum = Together(sum, true);
  for (int i = threadIdx.x; i < COLUMNS; i += BLOCK)
    out[begin + i] = expf(x[begin + i] - largest) / sum;
  EXTRA
}
"""
)
# Var(x) = E[x^2] - E[x]^2 cancels where the mean is large.
LAYER_NORM = (
    HEAD % "x, norm_weight, norm_bias, out"
    + """
extern "C" __global__ void rows_of(const float* x, const float* weight, const float* bias,
                                   float* out) {
  const long long begin = (long long)blockIdx.x * COLUMNS;
  float sum = 0, squares = 0;
  for (int i = threadIdx.x; i < COLUMNS; i += BLOCK) {
    sum += x[begin + i];
    squares += x[begin + i] * x[begin + i];
  }
  const float mean = Together(sum, true) / COLUMNS;
  const float variance = Together(squares, true) / COLUMNS - mean * mean;
  const float scale = rsqrtf(variance + 1e-5f);
  for (int i = threadIdx.x; i < COLUMNS; i += BLOCK)
    out[begin + i] = (x[begin + i] - mean) * scale * weight[i] + bias[i];
}
"""
)
PYTHON = """import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return {}
"""


# `.item()` waits, which no graph can hold.
WAITS = """import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return 2 * x if x[0, 0].item() == x[0, 0].item() else x
def get_inputs():
    return [torch.randn(64, 512)]
def get_init_inputs():
    return []
"""
TWICE = """//! dim    rows = x.size(0)
//! launch twice grid=(rows) block=(512) args=(x, out)
extern "C" __global__ void twice(const float* x, float* out) {
  const int i = blockIdx.x * 512 + threadIdx.x;
  out[i] = x[i] + x[i];
}
"""


def softmax(extra=""):
    return SOFTMAX.replace("EXTRA", extra)


@pytest.mark.alone
def test_a_right_kernel_is_correct(judge):
    verdict = judge("softmax.cu", softmax())
    assert_right(verdict)
    (kernel,) = verdict["kernels"]
    assert (kernel["name"], kernel["threads"], kernel["blocks"]) == ("rows_of", 256, 1024)
    assert 8 < kernel["registers"] < 100 and kernel["stack_bytes"] == 0
    assert 0.25 <= kernel["occupancy"] <= 1 and kernel["shared_bytes"] >= 128
    assert all(len(pair["sm_mhz"]) == len(pair["order"]) for pair in verdict["samples"])
    assert all(300 < mhz < 3000 for pair in verdict["samples"] for mhz in pair["sm_mhz"])
    assert verdict["candidate"]["form"] == "device"
    assert verdict["candidate"]["trust"] == "device-only"
    assert verdict["correctness"]["precision_class"] == "float32"


@pytest.mark.alone
def test_short_calls_are_replayed_as_graphs(judge):
    # A few microseconds of work, which PyTorch takes three times as long to launch.
    verdict = judge("softmax.cu", softmax(), options=["--set", "ROWS=256", "--set", "COLUMNS=1024"])
    assert_right(verdict)
    replayed = verdict["speed"]["baselines"]["eager"]
    assert replayed["launched"]["time_ns"] > 1.1 * replayed["time_ns"], replayed
    assert "replayed as CUDA graphs" in replayed["note"]
    assert replayed["pairs"] == 3, "graphs are quiet, and this is clear"
    again = judge(
        "softmax.cu",
        softmax(),
        options=["--set", "ROWS=256", "--set", "COLUMNS=1024", "--no-replay"],
    )
    assert_right(again)
    assert again["speed"]["baselines"]["eager"]["launched"] is None
    assert replayed["time_ns"] < again["speed"]["baselines"]["eager"]["time_ns"]


@pytest.mark.alone
def test_a_reference_that_waits_for_the_device_is_launched_call_by_call(judge, tmp_path):
    problem = tmp_path / "waits.py"
    problem.write_text(WAITS)
    verdict = judge("waits.cu", TWICE, str(problem), options=["--one-size"], size=None)
    assert_right(verdict)
    assert verdict["speed"]["baselines"]["eager"]["launched"] is None


def test_the_device_form_is_judged_at_another_size_too(judge):
    options = ["--correctness-only"]
    verdict = judge("softmax.cu", softmax(), options=options)
    assert_right(verdict)
    assert any(draw.get("set") for draw in verdict["correctness"]["draws"]), verdict["correctness"]
    one_size = softmax("if (COLUMNS != 2048 && threadIdx.x == 0) out[begin] = 7;")
    verdict = judge("one_size.cu", one_size, options=options)
    assert verdict["outcome"] == "wrong"
    assert "right at the size that was asked for, but at" in verdict["message"]
    verdict = judge("one_size.cu", one_size, options=[*options, "--one-size"])
    assert_right(verdict)
    cannot = softmax().replace(HEAD % "x, out", HEAD % "x, out" + "static_assert(COLUMNS == 2048);")
    verdict = judge("cannot.cu", cannot, options=options)
    assert verdict["outcome"] == "build_failed"
    assert "it builds at the size that was asked for, but at" in verdict["message"]


@pytest.mark.alone
def test_pytorch_against_itself_is_not_faster(judge):
    verdict = judge("same.py", PYTHON.format("torch.softmax(x, dim=-1)"))
    assert_right(verdict)
    assert verdict["outcome"] in ("tie", "unsettled"), verdict["message"]


def test_a_kernel_that_is_off_by_a_thousandth_is_wrong(judge):
    verdict = judge("off.cu", softmax().replace("/ sum;", "/ sum * 1.001f;"))
    assert verdict["outcome"] == "wrong"
    assert "off by a factor of 1.001" in verdict["message"]


def test_half_precision_inside_is_named(judge):
    source = softmax().replace(
        "expf(x[begin + i] - largest) / sum",
        "__uint_as_float(__float_as_uint(expf(x[begin + i] - largest) / sum) & 0xffffe000u)",
    )
    verdict = judge("short.cu", source)
    assert verdict["outcome"] == "wrong"
    assert verdict["correctness"]["precision_class"] in ("tf32", "float16", "bfloat16")


def test_a_variance_that_cancels_fails_on_shifted_values_alone(judge):
    verdict = judge("layer_norm.cu", LAYER_NORM, "layer_norm")
    assert verdict["outcome"] == "wrong"
    draws = {draw["kind"]: draw["result"] for draw in verdict["correctness"]["draws"]}
    assert draws["ordinary"] == "passed" and draws["large-offset"] == "failed", draws
    assert "cancel" in verdict["message"]


def test_writing_past_the_output_is_seen(judge):
    verdict = judge(
        "past.cu", softmax("if (blockIdx.x == gridDim.x - 1) out[begin + COLUMNS] = 1;")
    )
    assert verdict["outcome"] == "wrong"
    assert "past the end of output out" in verdict["message"]


def test_writing_to_an_input_is_seen(judge):
    verdict = judge("input.cu", softmax("const_cast<float*>(x)[begin] = 0;"))
    assert verdict["outcome"] == "crashed"
    assert "it wrote to its inputs" in verdict["message"]


def test_an_output_that_is_not_written_is_wrong(judge):
    verdict = judge(
        "unwritten.cu", softmax().replace("out[begin + i] =", "if (i > 0) out[begin + i] =")
    )
    assert verdict["outcome"] == "wrong"


def test_an_illegal_access_is_a_crash_and_the_next_verdict_stands(judge):
    verdict = judge("illegal.cu", softmax("out[begin + (1LL << 40)] = 1;"))
    assert verdict["outcome"] == "crashed"
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in verdict["message"]
    assert_right(judge("after.cu", softmax(), options=["--correctness-only"]))


@pytest.mark.alone
def test_a_kernel_that_hangs_is_stopped_and_the_next_verdict_stands(judge):
    hangs = softmax("while (*(volatile const float*)x != 1e30f) {}")
    verdict = judge("hangs.cu", hangs, options=["--timeout", "3"])
    assert verdict["outcome"] == "timed_out"
    assert_right(judge("after.cu", softmax(), options=["--correctness-only"]))


@pytest.mark.alone
def test_scratch_beyond_the_devices_memory_is_said_and_the_next_verdict_stands(judge):
    source = "//! scratch huge float[rows * 100000000]\n" + softmax().replace(
        "args=(x, out)", "args=(x, out, huge)"
    ).replace("float* out) {", "float* out, float* huge) {")
    lines = source.splitlines()
    source = "\n".join([lines[1], lines[0], *lines[2:]])  # the line uses `rows`
    verdict = judge("scratch.cu", source)
    assert verdict["outcome"] in ("build_failed", "out_of_memory", "crashed"), verdict["message"]
    assert "memory" in verdict["message"].lower()
    assert_right(judge("after.cu", softmax(), options=["--correctness-only"]))


def test_a_source_that_does_not_compile_names_its_line(judge):
    verdict = judge("broken.cu", softmax("undeclared = 1;"))
    assert verdict["outcome"] == "build_failed"
    assert "undeclared" in verdict["message"] and "line" in verdict["message"]


def test_a_wrong_model_in_python_is_wrong(judge):
    assert judge("wrong.py", PYTHON.format("torch.softmax(x, dim=0)"))["outcome"] == "wrong"


def test_a_result_on_the_processor_is_told(judge):
    verdict = judge("cpu.py", PYTHON.format("torch.softmax(x, dim=-1).cpu()"))
    assert verdict["outcome"] == "wrong"
    assert "cpu" in verdict["message"]


@pytest.mark.parametrize("problem", ["matmul", "rms_norm", "conv2d", "attention", "cross_entropy"])
def test_problems_of_the_suite_are_judged_in_python(judge, problem):
    source = (ROOT / "problems" / "level1" / f"{problem}.py").read_text()
    verdict = judge(
        f"{problem}.py",
        source.replace("class Model(", "class ModelNew(").replace(
            "super(Model,", "super(ModelNew,"
        ),
        problem,
        ["--correctness-only"],
    )
    assert_right(verdict)


SHIPPED = sorted(
    path
    for path in (ROOT / "kernels").rglob("*.*")
    if not any(path.parent.glob("ladder*.toml"))  # `assay ladder` judges those
    and (path.suffix == ".cu" or (path.suffix == ".py" and "import triton" in path.read_text()))
)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_shipped_kernels_are_right(judge, path):
    problem = path.parent.name
    assert_right(judge(path.name, path.read_text(), problem, ["--correctness-only"]))
