// LayerNorm over rows of 4.2 million values, a part of the affine vectors on chip.
//
// Idea: each block needs the same 127 KB of weights and of biases for every row: L2 hands out 16
// times 33 MB, as much as memory moves, and an SM takes only 64 bytes a clock. Shared memory has
// 100 KB left: 6 of each thread's 16 loads of weights and biases stay there for all rows.
// Prediction: 200% of the library. Reads from L2 fall from 800 to 600 MB.
// Measured: 0.316 ms on an H100, 144% of the library, 60% of the peak, not 200%, but 113 us faster
// than rung 11: far more than 200 MB from L2 are worth (27 us). Likely: with 6 of 16 loads kept,
// the other 21 MB of vectors stay in L2, and memory is spared them. Level with rung 9.
// Rows longer than 64 * BLOCK * BLOCKS columns (4,325,376) do not fit in registers.
// KEPT: how many of each thread's loads of weights and biases stay in shared memory (226 KB in
// all).
//! constant ROWS = x.size(0)
//! constant COLUMNS = x.size(1) * x.size(2) * x.size(3)
//! tune     BLOCK = 512
//! tune     BLOCKS = 132
//! constant WIDTH = 4 - 3 * min(COLUMNS % 4, 1)
//! constant SLICE = WIDTH * ceil_div(COLUMNS, WIDTH * BLOCKS)
//! constant EACH = ceil_div(SLICE, BLOCK * WIDTH)
//! scratch  partial float[ROWS * BLOCKS * 2]
//! constant KEPT = max(0, min(EACH, (231424 - 4 * SLICE) / (8 * BLOCK * WIDTH)))
//! dim      held = 4 * SLICE + 8 * BLOCK * WIDTH * KEPT
//! launch layer_norm grid=BLOCKS block=BLOCK shared=held args=(x,norm_weight,norm_bias,partial,out)

// WIDTH: values a load, 1 where rows do not start on 16 bytes. SLICE: columns of a row that a block
// takes; the last blocks of a short row have fewer or none. EACH: loads a thread. BLOCKS: no more
// than the GPU has multiprocessors (132 on an H100 or H200 SXM).
__device__ int ColumnsOf(int block) { return max(0, min(SLICE, COLUMNS - block * SLICE)); }

constexpr float kEpsilon = 1e-5f;     // nn.LayerNorm's default
constexpr int kStep = BLOCK * WIDTH;  // columns that the block reads at once
constexpr int kBatch = 4;             // packs whose weights and biases are asked for at once

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

__device__ void StoreShared(float* to, const float (&value)[WIDTH]) {
  if constexpr (WIDTH == 4)
    *reinterpret_cast<float4*>(to) = make_float4(value[0], value[1], value[2], value[3]);
  else
    *to = value[0];
}

// Of some values: how many, their mean, and the sum of the squares of their distances from it.
struct Moments {
  float count = 0;
  float mean = 0;
  float squares = 0;
};

// Of both sets together, by Chan's formula: only differences of means are squared, so that values
// around 1000 lose nothing. The brackets matter: step * step * a.count overflows beside a value
// near 1e19, whose square a float still holds.
__device__ Moments Merge(Moments a, Moments b) {
  if (a.count == 0) return b;
  if (b.count == 0) return a;
  const float share = __fdividef(b.count, a.count + b.count);
  const float step = b.mean - a.mean;
  Moments both;
  both.count = a.count + b.count;
  both.mean = a.mean + step * share;
  both.squares = a.squares + b.squares + step * step * (a.count * share);
  return both;
}

// Of the thread's packs: their mean first, then the distances from it.
__device__ Moments MomentsOf(const float (&values)[EACH][WIDTH], int packs) {
  Moments moments;
  if (packs <= 0) return moments;
  moments.count = packs * WIDTH;
  float sum = 0;
#pragma unroll
  for (int i = 0; i < EACH; ++i) {
    float of_pack = 0;
    for (const float value : values[i]) of_pack += value;
    sum += i < packs ? of_pack : 0;
  }
  moments.mean = __fdividef(sum, moments.count);
#pragma unroll
  for (int i = 0; i < EACH; ++i) {
    float of_pack = 0;
    for (const float value : values[i]) of_pack += (value - moments.mean) * (value - moments.mean);
    moments.squares += i < packs ? of_pack : 0;
  }
  return moments;
}

__device__ Moments OverWarp(Moments moments) {
  for (int step = 16; step > 0; step /= 2) {
    Moments other;
    other.count = __shfl_xor_sync(~0u, moments.count, step);
    other.mean = __shfl_xor_sync(~0u, moments.mean, step);
    other.squares = __shfl_xor_sync(~0u, moments.squares, step);
    moments = Merge(moments, other);
  }
  return moments;
}

__device__ Moments OverBlock(Moments moments) {
  __shared__ Moments of_warp[BLOCK / 32];
  const int lane = threadIdx.x % 32;
  moments = OverWarp(moments);
  if (lane == 0) of_warp[threadIdx.x / 32] = moments;
  __syncthreads();
  return OverWarp(lane < BLOCK / 32 ? of_warp[lane] : Moments());
}

__device__ unsigned long long LoadAcquire(const unsigned long long* from) {
  unsigned long long value;
  asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
  return value;
}

// How many blocks have come to a barrier since the module was loaded, which is when it is 0. It
// only grows, so nothing has to be reset: a barrier is over at the next multiple of BLOCKS.
__device__ unsigned long long arrivals;

// A barrier of all blocks. It relies on all of them running at once: one a multiprocessor, and the
// kernel before it in the stream is over. Where that does not hold, the wait ends in a trap after
// some seconds instead of never.
__device__ void GridBarrier() {
  constexpr int kPollsMax = 1 << 22;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();  // what the block wrote comes before its arrival
    const unsigned long long before = atomicAdd(&arrivals, 1ull);
    const unsigned long long enough = (before / BLOCKS + 1) * BLOCKS;
    int polls = 0;
    while (LoadAcquire(&arrivals) < enough)
      if (++polls == kPollsMax) __trap();
  }
  __syncthreads();
}

// Of the row whose blocks' pairs (mean, squares) lie at `partial`. Past L1, which may hold old
// ones.
__device__ Moments OverGrid(const float2* partial) {
  Moments moments;
  for (int i = threadIdx.x % 32; i < BLOCKS; i += 32) {
    const float2 of_block = __ldcg(partial + i);
    Moments other;
    other.count = ColumnsOf(i);
    other.mean = of_block.x;
    other.squares = of_block.y;
    moments = Merge(moments, other);
  }
  return OverWarp(moments);
}

// A barrier of one arrival, after which copies that it has been told of must come in.
__device__ void InitBarrier(unsigned long long* barrier) {
  const auto address = static_cast<unsigned int>(__cvta_generic_to_shared(barrier));
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Starts a copy of `bytes`, a multiple of 16, and arrives at the barrier, whose phase ends when the
// copy is done. What is copied leaves L2 first.
__device__ void CopyInBulk(float* to, const float* from, unsigned int bytes,
                           unsigned long long* barrier) {
  const auto target = static_cast<unsigned int>(__cvta_generic_to_shared(to));
  const auto address = static_cast<unsigned int>(__cvta_generic_to_shared(barrier));
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address), "r"(bytes)
               : "memory");
  asm volatile(
      "{\n"
      ".reg .b64 policy;\n"
      "createpolicy.fractional.L2::evict_first.b64 policy, 1.0;\n"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1], %2, [%3], policy;\n"
      "}" ::"r"(target),
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
    layer_norm(const float* __restrict__ x, const float* __restrict__ weight,
               const float* __restrict__ bias, float2* partial, float* __restrict__ out) {
  extern __shared__ __align__(128) float stage[];  // the slice of the row that comes next
  __shared__ unsigned long long arrived;
  const int columns = ColumnsOf(blockIdx.x);
  const int begin = blockIdx.x * SLICE;
  const int first = threadIdx.x * WIDTH;
  const int packs = min(EACH, max(0, (columns - first + kStep - 1) / kStep));
  x += begin + first;  // where the thread's packs begin; they lie kStep apart
  out += begin + first;
  weight += begin + first;
  bias += begin + first;
  const bool in_bulk = WIDTH == 4 && columns > 0;  // a bulk copy is of 16 bytes and their multiples
  float* const kept_weights = stage + SLICE + first;  // each thread uses places of its own alone
  float* const kept_biases = kept_weights + KEPT * kStep;
#pragma unroll
  for (int i = 0; i < KEPT; ++i) {
    if (i >= packs) break;
    float values[WIDTH];
    Load(weight + i * kStep, values);
    StoreShared(kept_weights + i * kStep, values);
    Load(bias + i * kStep, values);
    StoreShared(kept_biases + i * kStep, values);
  }
  if (threadIdx.x == 0) {
    InitBarrier(&arrived);
    if (in_bulk) CopyInBulk(stage, x, 4 * columns, &arrived);
  }
  __syncthreads();

  for (int row = 0; row < ROWS; ++row, x += COLUMNS, out += COLUMNS) {
    float values[EACH][WIDTH];
    if (in_bulk) WaitForPhase(&arrived, row % 2);
#pragma unroll
    for (int i = 0; i < EACH; ++i)
      if (i < packs) Load((WIDTH == 4 ? stage + first : x) + i * kStep, values[i]);
    __syncthreads();  // the stage has been read
    if (threadIdx.x == 0 && in_bulk && row + 1 < ROWS)
      CopyInBulk(stage, x + COLUMNS, 4 * columns, &arrived);

    const Moments of_block = OverBlock(MomentsOf(values, packs));
    if (threadIdx.x == 0)
      partial[row * BLOCKS + blockIdx.x] = make_float2(of_block.mean, of_block.squares);
    GridBarrier();
    const Moments moments = OverGrid(partial + row * BLOCKS);
    const float scale = rsqrtf(moments.squares / COLUMNS + kEpsilon);
#pragma unroll
    for (int batch = 0; batch < EACH; batch += kBatch) {
      float weights[kBatch][WIDTH], biases[kBatch][WIDTH];
#pragma unroll
      for (int i = batch; i < min(EACH, batch + kBatch); ++i) {
        if (i >= packs) continue;
        Load((i < KEPT ? kept_weights : weight) + i * kStep, weights[i - batch]);
        Load((i < KEPT ? kept_biases : bias) + i * kStep, biases[i - batch]);
      }
#pragma unroll
      for (int i = batch; i < min(EACH, batch + kBatch); ++i) {
        if (i >= packs) continue;
        for (int j = 0; j < WIDTH; ++j)
          values[i][j] =
              (values[i][j] - moments.mean) * scale * weights[i - batch][j] + biases[i - batch][j];
        Store(out + i * kStep, values[i]);
      }
    }
  }
}
