"""The occupancy that verdicts tell, which is computed from facts of the device and of the machine
code, against what the driver says of the same kernel.
"""
import pytest

cupy = pytest.importorskip("cupy")

SOURCE = """extern "C" __global__ void __launch_bounds__(BLOCK)
rows_of(const float* x, float* out) {
  __shared__ float kept[SHARED];
  float value[EACH];
  const long long begin = (long long)blockIdx.x * COLUMNS;
  for (int i = threadIdx.x; i < SHARED; i += BLOCK) kept[i] = 0;
  __syncthreads();
  float largest = -__int_as_float(0x7f800000), sum = 0;
  for (int i = 0; i < COLUMNS; ++i) largest = fmaxf(largest, x[begin + i]);
  for (int i = 0; i < COLUMNS; ++i) sum += expf(x[begin + i] - largest);
#pragma unroll
  for (int i = 0; i < EACH; ++i) {
    const int column = threadIdx.x + i * BLOCK;
    value[i] = column < COLUMNS ? x[begin + column] : 0;
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < EACH; ++i)
    if (threadIdx.x + i * BLOCK < COLUMNS)
      out[begin + threadIdx.x + i * BLOCK] = expf(value[i] - largest) / sum + kept[i % SHARED];
}
"""


@pytest.mark.parametrize("block, shared", [(32, 1), (96, 512), (256, 1), (256, 11000), (1024, 1)])
def test_the_driver_says_the_same(judge, block, shared):
    columns = 512
    each = -(-columns // block)
    head = (
        "//! dim rows = x.size(0)\n"
        "//! constant COLUMNS = x.size(1)\n"
        f"//! tune BLOCK = {block}\n//! tune SHARED = {shared}\n//! tune EACH = {each}\n"
        "//! launch rows_of grid=(rows) block=(BLOCK) args=(x, out)\n"
    )
    options = ["--correctness-only", "--one-size", "--set", "ROWS=64", "--set", "COLUMNS=512"]
    verdict = judge("rows.cu", head + SOURCE, options=options)
    assert verdict["correctness"]["passed"], verdict["message"]
    (kernel,) = verdict["kernels"]
    constants = {"COLUMNS": columns, "BLOCK": block, "SHARED": shared, "EACH": each}
    text = "".join(f"#define {name} {value}\n" for name, value in constants.items()) + SOURCE
    function = cupy.RawModule(code=text).get_function("rows_of")
    assert kernel["registers"] == function.num_regs, "not compiled alike: nothing can be compared"
    assert kernel["shared_bytes"] == function.shared_size_bytes
    blocks = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(
        function.kernel.ptr, block, 0
    )
    threads = cupy.cuda.Device(0).attributes["MaxThreadsPerMultiProcessor"]
    warps = -(-block // 32) * 32
    assert kernel["occupancy"] == pytest.approx(blocks * warps / threads)
