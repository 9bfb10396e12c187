// Softmax, blocks that stay, with the next row on its way while this one is worked on.
//
// Idea: as many blocks as there are SMs, in clusters of two, and each cluster takes row after row.
// Half a row lies in a block's registers (32 values a thread). As soon as it does, one thread
// starts a bulk copy of the next row's half into shared memory: the memory reads all the time,
// whatever the block does. The pairs of numbers have two places, used in turns, so that one barrier
// of the cluster a row is enough.
// Prediction: 135% of the library, 96% of the speed of a copy.
// Measured: 0.807 ms on an H100, 189% of the library, 88.4% of the speed of a copy, not 96%: no
// gain on rungs 6 and 7. So it is not the lack of copies ahead that is missing.
// Rows longer than 32 * BLOCK * CLUSTER columns (65536) do not fit in registers. Rows of a number
// of columns that is no multiple of 4 cannot be copied in bulk, and are read as before.
//! constant ROWS = x.size(0)
//! constant COLUMNS = x.size(1)
//! tune     BLOCK = 1024 512
//! tune     CLUSTER = 2
//! tune     SMS = 132 128
//! constant WIDTH = 4 - 3 * min(COLUMNS % 4, 1)
//! constant SLICE = WIDTH * ceil_div(COLUMNS, WIDTH * CLUSTER)
//! constant EACH = ceil_div(SLICE, BLOCK * WIDTH)
//! constant CLUSTERS = min(ROWS, SMS / CLUSTER)
//! dim      bytes = 4 * SLICE
//! dim      blocks = CLUSTERS * CLUSTER
//! launch   softmax grid=blocks block=BLOCK cluster=CLUSTER shared=bytes args=(x, out)

__device__ float Infinity() { return __int_as_float(0x7f800000); }

// WIDTH: values a load, 1 where rows do not start on 16 bytes. SLICE: columns a block; the last
// blocks of a short row have fewer or none. EACH: loads a thread. SMS is that of an H100 or H200
// with 132; another number is as right, and not as fast.

__device__ void Load(const float* from, float (&value)[WIDTH]) {
  if constexpr (WIDTH == 4) {
    const float4 four = *reinterpret_cast<const float4*>(from);
    value[0] = four.x, value[1] = four.y, value[2] = four.z, value[3] = four.w;
  } else {
    value[0] = *from;
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

// A barrier of one arrival, after which copies that it has been told of must come in.
__device__ void InitBarrier(unsigned long long* barrier) {
  const auto address = static_cast<unsigned int>(__cvta_generic_to_shared(barrier));
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Starts a copy of `bytes`, a multiple of 16, and arrives at the barrier, whose phase ends when the
// copy is done.
__device__ void CopyInBulk(float* to, const float* from, unsigned int bytes,
                           unsigned long long* barrier) {
  const auto target = static_cast<unsigned int>(__cvta_generic_to_shared(to));
  const auto address = static_cast<unsigned int>(__cvta_generic_to_shared(barrier));
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address), "r"(bytes)
               : "memory");
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(target),
      "l"(from), "r"(bytes), "r"(address)
      : "memory");
}

// Until the barrier's phase of this parity (0 for the first, 1 for the second, 0 ...) has ended.
__device__ void WaitForPhase(unsigned long long* barrier, unsigned int parity) {
  const auto address = static_cast<unsigned int>(__cvta_generic_to_shared(barrier));
  unsigned int ended = 0;
  while (ended == 0)
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n"
        "}"
        : "=r"(ended)
        : "r"(address), "r"(parity)
        : "memory");
}

extern "C" __global__ void __launch_bounds__(BLOCK, 1)
    softmax(const float* __restrict__ x, float* __restrict__ out) {
  extern __shared__ __align__(128) float stage[];  // the slice of the row that comes next
  __shared__ unsigned long long arrived;
  __shared__ float2 of_block[2][CLUSTER];  // of even and odd turns: largest value, sum
  const unsigned int rank = ClusterRank();
  const int begin = rank * SLICE;
  const int columns = min(SLICE, COLUMNS - begin);  // not above 0: nothing to do
  const bool in_bulk = WIDTH == 4 && columns > 0;
  const int first = threadIdx.x * WIDTH;
  constexpr int kStep = BLOCK * WIDTH;  // columns that the block reads at once

  long long row = blockIdx.x / CLUSTER;
  if (threadIdx.x == 0) {
    InitBarrier(&arrived);
    if (in_bulk) CopyInBulk(stage, x + row * COLUMNS + begin, 4 * columns, &arrived);
  }
  ClusterArrive();  // "I run": nobody writes into a block that has not begun. And for the block's
  ClusterWait();    // own threads: the barrier is there.

  for (unsigned int turn = 0; row < ROWS; ++turn, row += CLUSTERS) {
    const float* const source = x + row * COLUMNS + begin;
    float values[EACH][WIDTH];
    if (in_bulk) WaitForPhase(&arrived, turn % 2);
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
      const int column = first + i * kStep;
      for (float& value : values[i]) value = -Infinity();  // adds nothing
      if (column < columns) Load((WIDTH == 4 ? stage : source) + column, values[i]);
    }
    __syncthreads();  // the stage has been read
    if (threadIdx.x == 0 && in_bulk && row + CLUSTERS < ROWS)
      CopyInBulk(stage, source + (long long)CLUSTERS * COLUMNS, 4 * columns, &arrived);

    // From the smallest finite number, not from -infinity: (-infinity) - (-infinity) would be NaN
    // where half a row has no other values.
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

    const float2* const of_row = of_block[turn % 2];
    if (threadIdx.x < CLUSTER)
      StoreRemote(of_block[turn % 2] + rank, threadIdx.x, make_float2(largest, sum));
    ClusterArrive();
    ClusterWait();
    float largest_of_row = of_row[0].x;
    for (int i = 1; i < CLUSTER; ++i) largest_of_row = fmaxf(largest_of_row, of_row[i].x);
    float sum_of_row = 0;
    for (int i = 0; i < CLUSTER; ++i)
      sum_of_row += of_row[i].y * expf(of_row[i].x - largest_of_row);

    const float scale = expf(largest - largest_of_row) / sum_of_row;
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
      const int column = first + i * kStep;
      for (float& value : values[i]) value *= scale;
      if (column < columns) Store(out + row * COLUMNS + begin + column, values[i]);
    }
  }
}
