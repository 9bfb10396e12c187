// Softmax, a cluster of eight small blocks a row.
//
// Idea: the same kernel with blocks of 256 threads instead of 512, and eight of them a row instead
// of four. An SM holds four blocks, of different rows, instead of two: when one computes or waits
// for its cluster, three others read or write. (Against rung 7, not 8.)
// Prediction: 198% of the library, 92% of the speed of a copy, if what rungs 6 to 8 lack (they come
// to 89%) are moments in which too few bytes are on their way.
// Measured: 0.788 and 0.789 ms in two runs on an H100, 200% and 195% of the library (198% was
// predicted), 90.5% of the speed of a copy, 1.5 points less than predicted. 2.5% faster than rung
// 7.
// Rows longer than 32 * BLOCK * CLUSTER columns (65536) do not fit in registers: right, but slow.
//! constant ROWS = x.size(0)
//! constant COLUMNS = x.size(1)
//! tune     BLOCK = 256 512
//! tune     CLUSTER = 8 4
//! constant WIDTH = 4 - 3 * min(COLUMNS % 4, 1)
//! constant SLICE = WIDTH * ceil_div(COLUMNS, WIDTH * CLUSTER)
//! constant EACH = ceil_div(SLICE, BLOCK * WIDTH)
//! launch   softmax grid=(ROWS * CLUSTER) block=(BLOCK) cluster=(CLUSTER) args=(x, out)

__device__ float Infinity() { return __int_as_float(0x7f800000); }

// WIDTH: values a load, 1 where rows do not start on 16 bytes. SLICE: columns a block; the last
// blocks of a short row have fewer or none. EACH: loads a thread.

__device__ void Load(const float* from, float (&value)[WIDTH]) {
  if constexpr (WIDTH == 4) {
    const float4 four = __ldcs(reinterpret_cast<const float4*>(from));
    value[0] = four.x, value[1] = four.y, value[2] = four.z, value[3] = four.w;
  } else {
    value[0] = __ldcs(from);
  }
}

__device__ void Store(float* to, const float (&value)[WIDTH]) {
  if constexpr (WIDTH == 4)
    __stcs(reinterpret_cast<float4*>(to), make_float4(value[0], value[1], value[2], value[3]));
  else
    __stcs(to, value[0]);
}

__device__ float MaximumOfBlock(float value) {
  __shared__ float of_warp[BLOCK / 32];
  for (int step = 16; step > 0; step /= 2) value = fmaxf(value, __shfl_xor_sync(~0u, value, step));
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  value = of_warp[0];
  for (int warp = 1; warp < BLOCK / 32; ++warp) value = fmaxf(value, of_warp[warp]);
  return value;
}

__device__ float SumOfBlock(float value) {
  __shared__ float of_warp[BLOCK / 32];
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  value = of_warp[0];
  for (int warp = 1; warp < BLOCK / 32; ++warp) value += of_warp[warp];
  return value;
}

__device__ unsigned int ClusterRank() {
  unsigned int rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// A barrier of all threads of the cluster, in two halves. What a thread wrote before it arrives can
// be read by those that have waited.
__device__ void ClusterArrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ void ClusterWait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Writes to the place that `mine` has in the shared memory of the cluster's block `rank`.
__device__ void StoreRemote(float2* mine, unsigned int rank, float2 value) {
  const auto address = static_cast<unsigned int>(__cvta_generic_to_shared(mine));
  asm volatile(
      "{\n"
      ".reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "st.shared::cluster.v2.f32 [remote], {%2, %3};\n"
      "}" ::"r"(address),
      "r"(rank), "f"(value.x), "f"(value.y)
      : "memory");
}

extern "C" __global__ void __launch_bounds__(BLOCK, 1024 / BLOCK)
    softmax(const float* __restrict__ x, float* __restrict__ out) {
  __shared__ float2 of_block[CLUSTER];  // largest value, sum
  ClusterArrive();                      // "I run": nobody writes into a block that has not begun
  const unsigned int rank = ClusterRank();
  const int begin = rank * SLICE;
  const int columns = min(SLICE, COLUMNS - begin);  // not above 0: nothing to do
  x += (long long)(blockIdx.x / CLUSTER) * COLUMNS + begin;
  out += (long long)(blockIdx.x / CLUSTER) * COLUMNS + begin;
  const int first = threadIdx.x * WIDTH;
  constexpr int kStep = BLOCK * WIDTH;  // columns that the block reads at once

  float values[EACH][WIDTH];
#pragma unroll
  for (int i = 0; i < EACH; ++i) {
    const int column = first + i * kStep;
    for (float& value : values[i]) value = -Infinity();  // adds nothing
    if (column < columns) Load(x + column, values[i]);
  }
  // From the smallest finite number, not from -infinity: (-infinity) - (-infinity) would be NaN
  // where an eighth of a row has no other values.
  float largest = -3.402823466e38f;
#pragma unroll
  for (int i = 0; i < EACH; ++i)
    for (const float value : values[i]) largest = fmaxf(largest, value);
  largest = MaximumOfBlock(largest);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < EACH; ++i)
    for (float& value : values[i]) {
      value = expf(value - largest);
      sum += value;
    }
  sum = SumOfBlock(sum);

  ClusterWait();
  if (threadIdx.x < CLUSTER) StoreRemote(of_block + rank, threadIdx.x, make_float2(largest, sum));
  ClusterArrive();
  ClusterWait();
  float largest_of_row = of_block[0].x;
  for (int i = 1; i < CLUSTER; ++i) largest_of_row = fmaxf(largest_of_row, of_block[i].x);
  float sum_of_row = 0;
  for (int i = 0; i < CLUSTER; ++i)
    sum_of_row += of_block[i].y * expf(of_block[i].x - largest_of_row);

  const float scale = expf(largest - largest_of_row) / sum_of_row;
#pragma unroll
  for (int i = 0; i < EACH; ++i) {
    const int column = first + i * kStep;
    for (float& value : values[i]) value *= scale;
    if (column < columns) Store(out + column, values[i]);
  }
}
