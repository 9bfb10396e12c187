// Softmax on a GPU, one block a row and one read of it: the row stays in registers between its
// maximum, its sum and the result. Each thread reads four values at once; the host's part chooses how
// often. Rows that do not fit, or are not a multiple of four values, are read three times.
// expected: faster at small
#include <assay/kernel.h>

#include <cmath>
#include <cstdint>
#include <stdexcept>

namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kReadsMax = 8;  // of four values, by each thread: rows of up to 8192 columns

struct Larger {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};

// The same result in every thread of the block.
template <typename Combine>
__device__ float OverBlock(float value, Combine combine) {
  __shared__ float parts[kWarps];
  for (int step = 16; step > 0; step /= 2)
    value = combine(value, __shfl_xor_sync(~0u, value, step));
  __syncthreads();  // the last use of `parts` is over
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  value = parts[0];
  for (int warp = 1; warp < kWarps; ++warp) value = combine(value, parts[warp]);
  return value;
}

template <int kReads>
__global__ void __launch_bounds__(kThreads)
    SoftmaxInRegisters(const float* __restrict__ x, float* __restrict__ out, int columns) {
  const int64_t begin = int64_t{blockIdx.x} * columns;
  const auto* source = reinterpret_cast<const float4*>(x + begin);
  auto* target = reinterpret_cast<float4*>(out + begin);
  const int count = columns / 4;
  float4 values[kReads];
  float largest = -INFINITY;
#pragma unroll
  for (int i = 0; i < kReads; ++i) {
    const int at = static_cast<int>(threadIdx.x) + i * kThreads;
    values[i] =
        at < count ? source[at] : make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
    largest = fmaxf(largest,
                    fmaxf(fmaxf(values[i].x, values[i].y), fmaxf(values[i].z, values[i].w)));
  }
  largest = OverBlock(largest, Larger());
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kReads; ++i) {
    values[i] = make_float4(expf(values[i].x - largest), expf(values[i].y - largest),
                            expf(values[i].z - largest), expf(values[i].w - largest));
    if (static_cast<int>(threadIdx.x) + i * kThreads < count)
      sum += (values[i].x + values[i].y) + (values[i].z + values[i].w);
  }
  const float scale = 1 / OverBlock(sum, Sum());
#pragma unroll
  for (int i = 0; i < kReads; ++i) {
    const int at = static_cast<int>(threadIdx.x) + i * kThreads;
    if (at < count)
      target[at] = make_float4(values[i].x * scale, values[i].y * scale, values[i].z * scale,
                               values[i].w * scale);
  }
}

__global__ void __launch_bounds__(kThreads)
    SoftmaxFromMemory(const float* __restrict__ x, float* __restrict__ out, int64_t columns) {
  x += blockIdx.x * columns;
  out += blockIdx.x * columns;
  float largest = -INFINITY, sum = 0;
  for (int64_t i = threadIdx.x; i < columns; i += kThreads) largest = fmaxf(largest, x[i]);
  largest = OverBlock(largest, Larger());
  for (int64_t i = threadIdx.x; i < columns; i += kThreads) sum += expf(x[i] - largest);
  const float scale = 1 / OverBlock(sum, Sum());
  for (int64_t i = threadIdx.x; i < columns; i += kThreads) out[i] = expf(x[i] - largest) * scale;
}

}  // namespace

ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<float, 2> out, cudaStream_t stream) {
  const int64_t rows = x.size(0), columns = x.size(1);
  if (x.count() == 0) return;
  if (rows > INT32_MAX) throw std::runtime_error("more rows than a grid has blocks");
  const auto grid = static_cast<unsigned int>(rows);
  const int width = static_cast<int>(columns <= kThreads * 4 * kReadsMax ? columns : 0);
  if (width == 0 || columns % 4 != 0)
    SoftmaxFromMemory<<<grid, kThreads, 0, stream>>>(x.data(), out.data(), columns);
  else if (width <= kThreads * 4)
    SoftmaxInRegisters<1><<<grid, kThreads, 0, stream>>>(x.data(), out.data(), width);
  else if (width <= kThreads * 8)
    SoftmaxInRegisters<2><<<grid, kThreads, 0, stream>>>(x.data(), out.data(), width);
  else if (width <= kThreads * 16)
    SoftmaxInRegisters<4><<<grid, kThreads, 0, stream>>>(x.data(), out.data(), width);
  else
    SoftmaxInRegisters<kReadsMax><<<grid, kThreads, 0, stream>>>(x.data(), out.data(), width);
}
