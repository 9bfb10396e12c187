// LayerNorm over rows of 4.2 million values, the next row's mean before this row's result.
//
// Idea: a block arrives at the barrier for row r + 1 before it waits at that for row r: it adds the
// next slice up in shared memory first. By the time it waits, the others have long arrived. Then
// one loop writes row r from registers, moves row r + 1 into them, and starts the copy of row r + 2
// into the places that this frees. Each thread copies for itself (cp.async), and only what it will
// read itself, so no thread waits for another.
// Prediction: 210% of the library, 93% of the speed of a copy.
// Measured: 0.307 and 0.315 ms in two runs on an H100, 147% and 146% of the library, 62% and 60% of
// the speed of a copy, not 93%. The 570 MB take 0.19 ms; 117 us or more are left, 7 us for each of
// 16 rows. Likely: a block's copies, sums and stores follow each other, one block an SM, and memory
// rests between them.
// Takes rows of a number of columns that is a multiple of 4, up to 64 * BLOCK * BLOCKS (4,325,376).
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

static_assert(WIDTH == 4,
              "cp.async copies 16 bytes: the number of columns must be a multiple of 4");

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

// Of the thread's packs, which lie kStep apart: their mean first, then the distances from it.
__device__ Moments MomentsOf(const float* from, int packs) {
  Moments moments;
  if (packs <= 0) return moments;
  moments.count = packs * WIDTH;
  float sum = 0;
#pragma unroll 2
  for (int i = 0; i < packs; ++i) {
    float values[WIDTH];
    Load(from + i * kStep, values);
    float of_pack = 0;
    for (const float value : values) of_pack += value;
    sum += of_pack;
  }
  moments.mean = __fdividef(sum, moments.count);
#pragma unroll 2
  for (int i = 0; i < packs; ++i) {
    float values[WIDTH];
    Load(from + i * kStep, values);
    float of_pack = 0;
    for (const float value : values) of_pack += (value - moments.mean) * (value - moments.mean);
    moments.squares += of_pack;
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

// How many blocks have come to a barrier since the module was loaded, which is when it is 0; of
// even and of odd rows, as a block may arrive for the next row while others wait for this one. They
// only grow, so nothing has to be reset: a row's barrier is over at the next multiple of BLOCKS.
__device__ unsigned long long arrivals[2];

// By one thread of the block. What it wrote before can be read by those that have waited.
__device__ void Arrive(int row, unsigned long long (&enough)[2]) {
  __threadfence();
  enough[row % 2] = (atomicAdd(arrivals + row % 2, 1ull) / BLOCKS + 1) * BLOCKS;
}

// It relies on all blocks running at once: one a multiprocessor, and the kernel before it in the
// stream is over. Where that does not hold, the wait ends in a trap after some seconds instead of
// never.
__device__ void WaitForAll(int row, const unsigned long long (&enough)[2]) {
  constexpr int kPollsMax = 1 << 22;
  int polls = 0;
  while (LoadAcquire(arrivals + row % 2) < enough[row % 2])
    if (++polls == kPollsMax) __trap();
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

// Starts the copy of 16 bytes to shared memory. What is copied leaves L2 first.
__device__ void CopyAhead(float* to, const float* from) {
  const auto target = static_cast<unsigned int>(__cvta_generic_to_shared(to));
  asm volatile(
      "{\n"
      ".reg .b64 policy;\n"
      "createpolicy.fractional.L2::evict_first.b64 policy, 1.0;\n"
      "cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, policy;\n"
      "}" ::"r"(target),
      "l"(from)
      : "memory");
}

// Until all copies that this thread has started are there for it to read.
__device__ void WaitForCopies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// Adds the block's slice of a row up, once its copies are there, leaves its pair for all blocks,
// and arrives at the row's barrier.
__device__ void Publish(const float* slice, int packs, float2* partial, int row,
                        unsigned long long (&enough)[2]) {
  WaitForCopies();
  const Moments of_block = OverBlock(MomentsOf(slice, packs));
  if (threadIdx.x != 0) return;
  partial[row * BLOCKS + blockIdx.x] = make_float2(of_block.mean, of_block.squares);
  Arrive(row, enough);
}

extern "C" __global__ void __launch_bounds__(BLOCK, 1)
    layer_norm(const float* __restrict__ x, const float* __restrict__ weight,
               const float* __restrict__ bias, float2* partial, float* __restrict__ out) {
  extern __shared__ __align__(128) float stage[];  // each thread uses places of its own alone
  __shared__ unsigned long long enough[2];         // arrivals for even and odd rows; thread 0's
  const int columns = ColumnsOf(blockIdx.x);
  const int begin = blockIdx.x * SLICE;
  const int first = threadIdx.x * WIDTH;
  const int packs = min(EACH, max(0, (columns - first + kStep - 1) / kStep));
  x += begin + first;  // where the thread's packs begin; they lie kStep apart
  out += begin + first;
  weight += begin + first;
  bias += begin + first;
  float* const next = stage + first;
  float* const kept_weights = stage + SLICE + first;
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

  for (int i = 0; i < packs; ++i) CopyAhead(next + i * kStep, x + i * kStep);
  x += COLUMNS;
  Publish(next, packs, partial, 0, enough);
  float values[EACH][WIDTH];  // of the row that is written next
#pragma unroll
  for (int i = 0; i < EACH; ++i) {
    if (i >= packs) continue;
    Load(next + i * kStep, values[i]);
    if (ROWS > 1) CopyAhead(next + i * kStep, x + i * kStep);
  }
  __syncthreads();  // the last use of OverBlock's memory is over

  for (int row = 0; row < ROWS; ++row, out += COLUMNS) {
    x += COLUMNS;  // two rows ahead
    if (row + 1 < ROWS) Publish(next, packs, partial, row + 1, enough);
    if (threadIdx.x == 0) WaitForAll(row, enough);
    __syncthreads();
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
        if (row + 1 < ROWS) Load(next + i * kStep, values[i]);
        if (row + 2 < ROWS) CopyAhead(next + i * kStep, x + i * kStep);
      }
    }
  }
}
