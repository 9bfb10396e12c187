// LayerNorm over rows of 4.2 million values, one grid-wide kernel that holds the row on chip.
//
// Idea: a row of 16.8 MB over 132 SMs is 127 KB each, half of an SM's registers. All SMs take the
// same row: read a slice into registers, leave its mean and squares in memory, meet at a barrier of
// the whole grid, put 132 pairs together, write. x is read once. The affine vectors (33 MB) serve
// all 16 rows, from L2: what is used once (x, out) is marked so that it leaves L2 first.
// Prediction: 165% of the library. 570 MB instead of 840. But a row costs 4 us at the barrier and
// in the loads' latency, in which memory rests: 16 times.
// Measured: 0.447 ms on an H100, 102% of the library (the judge called it unsettled), 42% of the
// peak: a loss of 41% on rung 9, where a gain was predicted. Likely: the affine vectors do not stay
// in L2, and come from memory 16 times, 540 MB or 180 us; rung 12, which keeps a part of them on
// chip, is 113 us faster than rung 11. Kept, as rungs 11 to 13 are steps from here.
// Rows longer than 64 * BLOCK * BLOCKS columns (4,325,376) do not fit in registers.
//! constant ROWS = x.size(0)
//! constant COLUMNS = x.size(1) * x.size(2) * x.size(3)
//! tune     BLOCK = 512
//! tune     BLOCKS = 132
//! constant WIDTH = 4 - 3 * min(COLUMNS % 4, 1)
//! constant SLICE = WIDTH * ceil_div(COLUMNS, WIDTH * BLOCKS)
//! constant EACH = ceil_div(SLICE, BLOCK * WIDTH)
//! scratch  partial float[ROWS * BLOCKS * 2]
//! launch layer_norm grid=BLOCKS block=BLOCK args=(x, norm_weight, norm_bias, partial, out)

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

// Of what nobody reads again: the caches let go of it first.
__device__ void LoadLastTime(const float* from, float (&value)[WIDTH]) {
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

extern "C" __global__ void __launch_bounds__(BLOCK, 1)
    layer_norm(const float* __restrict__ x, const float* __restrict__ weight,
               const float* __restrict__ bias, float2* partial, float* __restrict__ out) {
  const int columns = ColumnsOf(blockIdx.x);
  const int begin = blockIdx.x * SLICE;
  const int first = threadIdx.x * WIDTH;
  const int packs = min(EACH, max(0, (columns - first + kStep - 1) / kStep));
  x += begin + first;  // where the thread's packs begin; they lie kStep apart
  out += begin + first;
  weight += begin + first;
  bias += begin + first;

  for (int row = 0; row < ROWS; ++row, x += COLUMNS, out += COLUMNS) {
    float values[EACH][WIDTH];
#pragma unroll
    for (int i = 0; i < EACH; ++i)
      if (i < packs) LoadLastTime(x + i * kStep, values[i]);
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
        Load(weight + i * kStep, weights[i - batch]);
        Load(bias + i * kStep, biases[i - batch]);
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
