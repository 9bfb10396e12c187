"""Native candidates in CUDA, and candidates in Python that compile for the GPU: load_inline and
Triton. Right ones, wrong ones, and those that misbehave.
"""
import pytest

from conftest import assert_right

NATIVE = """#include <assay/kernel.h>
#include <stdexcept>
__device__ float Together(float value, bool sum) {
  __shared__ float part[8];
  for (int step = 16; step > 0; step /= 2) {
    const float other = __shfl_xor_sync(~0u, value, step);
    value = sum ? value + other : fmaxf(value, other);
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = value;
  __syncthreads();
  value = part[0];
  for (int i = 1; i < 8; ++i) value = sum ? value + part[i] : fmaxf(value, part[i]);
  return value;
}
__global__ void rows_of(assay::Tensor<const float, 2> x, assay::Tensor<float, 2> out,
                        int64_t first) {
  const int64_t row = first + blockIdx.x, columns = x.size(1);
  float largest = -__int_as_float(0x7f800000), sum = 0;
  for (int64_t i = threadIdx.x; i < columns; i += 256) largest = fmaxf(largest, x(row, i));
  largest = Together(largest, false);
  for (int64_t i = threadIdx.x; i < columns; i += 256) sum += expf(x(row, i) - largest);
  sum = Together(sum, true);
  for (int64_t i = threadIdx.x; i < columns; i += 256)
    out(row, i) = expf(x(row, i) - largest) / sum;
  DEVICE
}
ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<float, 2> out, cudaStream_t stream) {
  const int rows = static_cast<int>(x.size(0));
  HOST
}
"""
LAUNCH = "rows_of<<<rows, 256, 0, stream>>>(x, out, 0);"


def native(host=LAUNCH, device=""):
    return NATIVE.replace("HOST", host).replace("DEVICE", device)


@pytest.mark.alone
def test_a_right_native_kernel_is_correct(judge):
    verdict = judge("softmax.cu", native())
    assert_right(verdict)
    assert verdict["candidate"]["form"] == "native"
    assert verdict["candidate"]["language"] == "cuda"
    assert verdict["candidate"]["trust"] == "sandboxed"
    assert verdict["toolchain"]["compiler"].startswith("nvcc (")
    assert verdict["correctness"]["precision_class"] == "float32"


def test_a_native_kernel_that_is_off_by_a_thousandth_is_wrong(judge):
    verdict = judge("off.cu", native().replace("/ sum;", "/ sum * 1.001f;"))
    assert verdict["outcome"] == "wrong"
    assert "off by a factor of 1.001" in verdict["message"]


def test_a_native_kernel_that_throws_has_crashed(judge):
    verdict = judge("throws.cu", native('throw std::runtime_error("no");'))
    assert verdict["outcome"] == "crashed", verdict["message"]


def test_writing_past_the_output_natively_is_seen(judge):
    past = "if (row == x.size(0) - 1 && threadIdx.x == 0) out.data()[x.count()] = 1;"
    verdict = judge("past.cu", native(device=past))
    assert verdict["outcome"] == "wrong"
    assert "past the end of output out" in verdict["message"]


def test_an_illegal_access_natively_is_a_crash_and_the_next_verdict_stands(judge):
    verdict = judge("illegal.cu", native(device="out.data()[1LL << 40] = 1;"))
    assert verdict["outcome"] == "crashed"
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in verdict["message"]
    assert_right(judge("after.cu", native(), options=["--correctness-only"]))


@pytest.mark.alone
@pytest.mark.parametrize("hang", ["device", "host"], ids=["on the device", "on the processor"])
def test_a_native_kernel_that_hangs_is_stopped(judge, hang):
    source = (
        native(device="while (*(volatile const float*)x.data() != 1e30f) {}")
        if hang == "device"
        else native("for (volatile int i = 0;; i = i + 1) {}")
    )
    verdict = judge("hangs.cu", source, options=["--timeout", "3"])
    assert verdict["outcome"] == "timed_out", verdict["message"]
    assert_right(judge("after.cu", native(), options=["--correctness-only"]))


TWO_STREAMS = """
  static cudaStream_t mine[2] = {};
  for (cudaStream_t& each : mine)
    if (each == nullptr) cudaStreamCreateWithFlags(&each, cudaStreamNonBlocking);
  if (rows > 1) rows_of<<<rows / 2, 256, 0, mine[0]>>>(x, out, 0);
  rows_of<<<rows - rows / 2, 256, 0, mine[1]>>>(x, out, rows / 2);
"""
DEFAULT_STREAM = "rows_of<<<rows, 256>>>(x, out, 0);"
GRAPH = """
  cudaGraph_t graph;
  cudaGraphExec_t ready;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  rows_of<<<rows, 256, 0, stream>>>(x, out, 0);
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&ready, graph, 0);
  cudaGraphLaunch(ready, stream);
  cudaGraphExecDestroy(ready);
  cudaGraphDestroy(graph);
"""
SCRATCH = """
  float* scratch;
  cudaMallocAsync(&scratch, out.count() * sizeof(float), stream);
  cudaMemcpyAsync(scratch, x.data(), x.count() * sizeof(float), cudaMemcpyDeviceToDevice, stream);
  rows_of<<<rows, 256, 0, stream>>>(x, out, 0);
  cudaFreeAsync(scratch, stream);
"""


@pytest.mark.parametrize(
    "host",
    [TWO_STREAMS, DEFAULT_STREAM, pytest.param(GRAPH, marks=pytest.mark.alone), SCRATCH],
    ids=["two streams", "default stream", "graph", "stream-ordered memory"],
)
def test_whatever_the_runtime_offers_works_after_the_lockdown(judge, host):
    options = [] if host is GRAPH else ["--correctness-only"]
    assert_right(judge("kernel.cu", native(host), options=options))


def test_a_native_source_that_does_not_compile_names_its_line(judge):
    for source in (native(device="undeclared = 1;"), native("undeclared = 1;")):
        verdict = judge("broken.cu", source)
        assert verdict["outcome"] == "build_failed"
        line = source.splitlines().index("  undeclared = 1;") + 1
        assert verdict["message"].startswith(f"line {line}: "), verdict["message"]
        assert "undeclared" in verdict["message"]


def test_a_signature_without_a_stream_is_shown_the_right_one(judge):
    source = native("rows_of<<<rows, 256>>>(x, out, 0);").replace(", cudaStream_t stream", "")
    verdict = judge("signature.cu", source)
    assert not verdict["correctness"] or not verdict["correctness"]["passed"], verdict
    assert "cudaStream_t stream)" in verdict["message"]


def test_starting_a_process_natively_ends_it(judge):
    source = "#include <unistd.h>\n" + native("if (fork() == 0) _exit(0); " + LAUNCH)
    verdict = judge("fork.cu", source)
    assert verdict["outcome"] in ("crashed", "foul"), verdict["message"]


CUBLAS = """//! flags -lcublas
#include <assay/kernel.h>
#include <cublas_v2.h>
ASSAY_KERNEL(assay::Tensor<const float, 2> a, assay::Tensor<const float, 2> b,
             assay::Tensor<float, 2> out, cudaStream_t stream) {
  static cublasHandle_t handle = [] {
    cublasHandle_t made;
    cublasCreate(&made);
    return made;
  }();
  cublasSetStream(handle, stream);
  const int rows = a.size(0), inner = a.size(1), columns = b.size(1);
  const float one = 1, zero = 0;
  cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, columns, rows, inner, &one, b.data(), columns,
              a.data(), inner, &zero, out.data(), columns);
}
"""


def test_cublas_can_be_called(judge):
    assert_right(judge("cublas.cu", CUBLAS, "matmul", ["--correctness-only"]))


INLINE = '''import torch
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>
__global__ void softmax_rows(const float* x, float* out, int columns) {
  __shared__ float part[256];
  x += (long long)blockIdx.x * columns;
  out += (long long)blockIdx.x * columns;
  float largest = -__int_as_float(0x7f800000), sum = 0;
  for (int i = threadIdx.x; i < columns; i += 256) largest = fmaxf(largest, x[i]);
  part[threadIdx.x] = largest;
  __syncthreads();
  for (int i = 0; i < 256; ++i) largest = fmaxf(largest, part[i]);
  __syncthreads();
  for (int i = threadIdx.x; i < columns; i += 256) sum += expf(x[i] - largest);
  part[threadIdx.x] = sum;
  __syncthreads();
  sum = 0;
  for (int i = 0; i < 256; ++i) sum += part[i];
  for (int i = threadIdx.x; i < columns; i += 256) out[i] = expf(x[i] - largest) / sum;
}
torch::Tensor softmax_cuda(torch::Tensor x) {
  auto out = torch::empty_like(x);
  softmax_rows<<<x.size(0), 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), x.size(1));
  return out;
}
"""
kernels = load_inline(
    name="softmax_inline",
    cpp_sources="torch::Tensor softmax_cuda(torch::Tensor x);",
    cuda_sources=SOURCE,
    functions=["softmax_cuda"],
    verbose=False,
)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return kernels.softmax_cuda(x)
'''


def test_load_inline_is_built_once_and_judged(judge, judge_all):
    right, off, broken = judge_all(
        [
            ("inline.py", INLINE),
            ("off.py", INLINE.replace("/ sum;", "/ sum * 1.001f;")),
            ("broken.py", INLINE.replace("float* out, int", "floot* out, int")),
        ],
        timeout_s=500,
    )
    assert_right(right)
    assert right["candidate"]["form"] == "python"
    assert off["outcome"] == "wrong"
    assert "off by a factor of 1.001" in off["message"]
    assert broken["outcome"] == "build_failed"
    assert "floot" in broken["message"], broken["message"]
    again = judge("inline.py", INLINE, options=["--correctness-only"], timeout_s=500)
    assert_right(again)
    assert again["cost"]["build_cached"]


LATE = INLINE.replace("kernels = load_inline(", "def built():\n  return load_inline(").replace(
    "kernels.softmax_cuda(x)", "built().softmax_cuda(x)"
)


def test_an_extension_may_be_built_in_the_first_call(judge):
    """The builder calls it once; a host, which may start no compiler, finds it built."""
    verdict = judge("late.py", LATE, options=["--correctness-only"], timeout_s=500)
    assert_right(verdict)


TRITON = """import torch
import triton
import triton.language as tl


TUNE
@triton.jit
def softmax_rows(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    values = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * columns + at, values / tl.sum(values, axis=0), mask=at < columns)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        softmax_rows[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
"""
TUNE = """@triton.autotune(
    configs=[triton.Config({}, num_warps=warps) for warps in (4, 8)], key=["columns"]
)"""


def triton(tune=""):
    return TRITON.replace("TUNE\n", tune + "\n" if tune else "")


@pytest.mark.alone
def test_triton_is_compiled_in_the_builder(judge):
    verdict = judge("softmax.py", triton())
    assert_right(verdict)
    assert "in the builder" not in verdict["log"], verdict["log"]


def test_triton_that_tunes_itself_is_judged(judge):
    assert_right(judge("tuned.py", triton(TUNE), options=["--correctness-only"]))


@pytest.mark.alone
def test_kernels_of_libraries_are_told_from_the_candidates_own(judge, judge_all):
    library = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n"
    library += "    def forward(self, x):\n        return torch.softmax(x, -1)\n"
    brief = ["--budget", "5"]
    own = [("inline.py", INLINE), ("triton.py", triton())]
    found = judge_all([*own, ("library.py", library)], options=brief, timeout_s=500)
    for verdict in found:
        assert_right(verdict)
        assert verdict["libraries"], verdict["message"]
    inline, compiled, called = (verdict["libraries"] for verdict in found)
    assert inline["foreign_share"] < 0.05 and compiled["foreign_share"] < 0.05, found
    assert called["shares"].get("PyTorch", 0) > 0.95, called
    cublas = judge("cublas.cu", CUBLAS, "matmul", brief)["libraries"]
    assert cublas["shares"].get("cuBLAS", 0) > 0.8, cublas


def test_a_wrong_triton_kernel_is_wrong(judge):
    verdict = judge("off.py", triton().replace("axis=0), mask", "axis=0) * 1.001, mask"))
    assert verdict["outcome"] == "wrong"
    assert "off by a factor of 1.001" in verdict["message"]


def test_triton_that_does_not_compile_is_told(judge):
    verdict = judge("broken.py", triton().replace("tl.exp(values", "tl.no_such_name(values"))
    assert not verdict["correctness"] or not verdict["correctness"]["passed"], verdict
    assert "no_such_name" in verdict["message"], verdict["message"]


def test_triton_is_judged_at_another_size_too(judge):
    verdict = judge("sizes.py", triton(), options=["--correctness-only"])
    assert_right(verdict)
    assert any(draw.get("set") for draw in verdict["correctness"]["draws"]), verdict["correctness"]


def test_a_first_call_that_ends_the_process_is_a_crash(judge):
    source = """import ctypes, torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        ctypes.string_at(0)
"""
    verdict = judge("crashes.py", source)
    assert verdict["outcome"] == "crashed", verdict["message"]
