// LayerNorm over rows of 4.2 million values, warps that add and warps that write.
//
// Idea: in rung 13 all threads of an SM do the same at the same time, and all SMs meet once a row,
// so memory rests wherever one thread waits. Here half of the warps only read x and add; they never
// wait at the grid's barrier. The other half wait there and write, a row and a half behind at most.
// They read the row again, from L2: a row and a half are 25 of its 50 MB. That leaves shared memory
// to the weights and biases: 14 of 16 loads of each thread.
// Prediction: 215% of the library, 90% of the speed of a copy. 570 MB are 190 us; nothing can be
// written during the first row, and nothing is read during the last, which costs little, as reads
// or writes alone are as fast as both; the launch and the first loads take 5 us more, and 15 us are
// a guess for what does not overlap. If the rows do not stay in L2, x comes from memory twice, 840
// MB, and nothing is won on rung 9.
// Measured: 0.328 ms on an H100, 140% of the library, 58% of the speed of a copy: a loss of 4% on
// rung 13 in the same run (0.315 ms), where a gain was predicted. Nsight counts 734 MB to and from
// DRAM in place of 570, and L2 has only 44% of what it is asked for: likely half of the second
// reads of x, or more, come from memory. Memory ran at 2.2 TB/s, as in rungs 15 and 16, so bytes
// decide. Other forms: 0.326 ms with LEAD = 125, 0.322 ms with 200, 0.316 ms with 256 threads of
// each kind and twice the loads in flight.
// LEAD: how far those that add may be ahead of those that write, in hundredths of a row. KEPT: how
// many of each thread's loads of weights and biases stay in shared memory (226 KB).
//! constant ROWS = x.size(0)
//! constant COLUMNS = x.size(1) * x.size(2) * x.size(3)
//! tune     HALF = 512
//! tune     BLOCKS = 132
//! tune     LEAD = 150 125 200
//! constant WIDTH = 4 - 3 * min(COLUMNS % 4, 1)
//! constant SLICE = WIDTH * ceil_div(COLUMNS, WIDTH * BLOCKS)
//! constant EACH = ceil_div(SLICE, HALF * WIDTH)
//! constant KEPT = min(EACH, 231424 / (8 * HALF * WIDTH))
//! scratch  partial float[ROWS * BLOCKS * 2]
//! dim      all = 2 * HALF
//! dim      held = 8 * HALF * WIDTH * KEPT
//! launch layer_norm grid=BLOCKS block=all shared=held args=(x,norm_weight,norm_bias,partial,out)

// WIDTH: values a load, 1 where rows do not start on 16 bytes. SLICE: columns of a row that a block
// takes; the last blocks of a short row have fewer or none. EACH: loads a thread. BLOCKS: no more
// than the GPU has multiprocessors (132 on an H100 or H200 SXM).
__device__ int ColumnsOf(int block) { return max(0, min(SLICE, COLUMNS - block * SLICE)); }

constexpr float kEpsilon = 1e-5f;                       // nn.LayerNorm's default
constexpr int kStep = HALF * WIDTH;                     // columns that each half reads at once
constexpr int kBatch = 4;                               // loads in flight
constexpr int kBatches = (EACH + kBatch - 1) / kBatch;  // of a row
constexpr int kLead = LEAD * kBatches / 100;            // batches that may wait to be written
constexpr int kWarps = HALF / 32;                       // of each half
constexpr int kPollsMax = 1 << 22;                      // then a wait ends in a trap
static_assert(LEAD >= 100, "a row must be added up before it is written");

__device__ void Load(const float* from, float (&value)[WIDTH]) {
  if constexpr (WIDTH == 4) {
    const float4 four = *reinterpret_cast<const float4*>(from);
    value[0] = four.x, value[1] = four.y, value[2] = four.z, value[3] = four.w;
  } else {
    value[0] = *from;
  }
}

// Past L1, which is small beside shared memory: the other half reads it again, from L2.
__device__ void LoadAgain(const float* from, float (&value)[WIDTH]) {
  if constexpr (WIDTH == 4) {
    const float4 four = __ldcg(reinterpret_cast<const float4*>(from));
    value[0] = four.x, value[1] = four.y, value[2] = four.z, value[3] = four.w;
  } else {
    value[0] = __ldcg(from);
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

__device__ void StoreShared(float* to, const float (&value)[WIDTH]) {
  if constexpr (WIDTH == 4)
    *reinterpret_cast<float4*>(to) = make_float4(value[0], value[1], value[2], value[3]);
  else
    *to = value[0];
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

// Of the first `packs` of a batch: their mean first, then the distances from it.
__device__ Moments MomentsOf(const float (&values)[kBatch][WIDTH], int packs) {
  Moments moments;
  if (packs <= 0) return moments;
  moments.count = packs * WIDTH;
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kBatch; ++i)
    for (const float value : values[i]) sum += i < packs ? value : 0;
  moments.mean = __fdividef(sum, moments.count);
#pragma unroll
  for (int i = 0; i < kBatch; ++i)
    for (const float value : values[i]) {
      const float distance = i < packs ? value - moments.mean : 0;
      moments.squares += distance * distance;
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

// A barrier of some of the block's threads: 1 is that of those that add, 2 of those that write.
__device__ void SyncSome(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// Over the half that adds. `turn` alternates between two places, so that one barrier is enough: who
// is a row ahead writes to the other place.
__device__ Moments OverHalf(Moments moments, int turn) {
  __shared__ Moments of_warp[2][kWarps];
  const int lane = threadIdx.x % 32;
  moments = OverWarp(moments);
  if (lane == 0) of_warp[turn][threadIdx.x / 32] = moments;
  SyncSome(1, HALF);
  return OverWarp(lane < kWarps ? of_warp[turn][lane] : Moments());
}

// How many blocks have left their sums of a row since the module was loaded, which is when it is 0.
// They only grow, so nothing has to be reset.
__device__ unsigned long long arrivals[ROWS];

__device__ unsigned long long LoadAcquire(const unsigned long long* from) {
  unsigned long long value;
  asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
  return value;
}

// What this thread wrote before can be read by those that have seen the new count.
__device__ void CountUp(unsigned long long* count) {
  asm volatile("red.release.gpu.global.add.u64 [%0], 1;" ::"l"(count) : "memory");
}

// It relies on all blocks running at once: one a multiprocessor, and the kernel before it in the
// stream is over. Where that does not hold, the wait ends in a trap after some seconds instead of
// never.
__device__ void WaitForAll(int row, unsigned long long enough) {
  int polls = 0;
  while (LoadAcquire(arrivals + row) < enough)
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

// The half that adds. Warp w is at most kLead batches ahead of the warp w that writes.
__device__ void AddRows(const float* x, int packs, float2* partial, const volatile int* written) {
  int polls = 0;
  for (int row = 0; row < ROWS; ++row, x += COLUMNS) {
    Moments moments;
    for (int batch = 0; batch < kBatches; ++batch) {
      while (*written + kLead <= row * kBatches + batch) {
        __nanosleep(100);
        if (++polls == kPollsMax) __trap();
      }
      float values[kBatch][WIDTH];
#pragma unroll
      for (int i = 0; i < kBatch; ++i)
        if (batch * kBatch + i < packs) LoadAgain(x + (batch * kBatch + i) * kStep, values[i]);
      moments = Merge(moments, MomentsOf(values, min(kBatch, packs - batch * kBatch)));
    }
    moments = OverHalf(moments, row % 2);
    if (threadIdx.x == 0) {
      partial[row * BLOCKS + blockIdx.x] = make_float2(moments.mean, moments.squares);
      CountUp(arrivals + row);
    }
  }
}

// The half that writes. Each thread uses places of its own alone in shared memory.
__device__ void WriteRows(const float* x, const float* weight, const float* bias, float* kept,
                          int packs, const float2* partial, unsigned long long enough, float* out,
                          volatile int* written) {
  float* const kept_biases = kept + KEPT * kStep;
#pragma unroll 4
  for (int i = 0; i < min(KEPT, packs); ++i) {
    float values[WIDTH];
    LoadLastTime(weight + i * kStep, values);
    StoreShared(kept + i * kStep, values);
    LoadLastTime(bias + i * kStep, values);
    StoreShared(kept_biases + i * kStep, values);
  }

  for (int row = 0; row < ROWS; ++row, x += COLUMNS, out += COLUMNS) {
    if (threadIdx.x == HALF) WaitForAll(row, enough);
    SyncSome(2, HALF);
    const Moments moments = OverGrid(partial + row * BLOCKS);
    const float scale = rsqrtf(moments.squares / COLUMNS + kEpsilon);
#pragma unroll
    for (int batch = 0; batch < kBatches; ++batch) {
      float values[kBatch][WIDTH];
#pragma unroll
      for (int i = 0; i < kBatch; ++i)
        if (batch * kBatch + i < packs) LoadLastTime(x + (batch * kBatch + i) * kStep, values[i]);
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        const int pack = batch * kBatch + i;
        if (pack >= packs) continue;
        float weights[WIDTH], biases[WIDTH];
        Load((pack < KEPT ? kept : weight) + pack * kStep, weights);
        Load((pack < KEPT ? kept_biases : bias) + pack * kStep, biases);
        for (int j = 0; j < WIDTH; ++j)
          values[i][j] = (values[i][j] - moments.mean) * scale * weights[j] + biases[j];
        Store(out + pack * kStep, values[i]);
      }
      if (threadIdx.x % 32 == 0) *written = row * kBatches + batch + 1;
    }
  }
}

extern "C" __global__ void __launch_bounds__(2 * HALF, 1)
    layer_norm(const float* __restrict__ x, const float* __restrict__ weight,
               const float* __restrict__ bias, float2* partial, float* __restrict__ out) {
  extern __shared__ __align__(128) float kept[];  // weights, then biases
  __shared__ volatile int written[kWarps];        // batches, by each warp of the half that writes
  __shared__ unsigned long long enough;           // arrivals of this call's blocks and all before
  if (threadIdx.x < kWarps) written[threadIdx.x] = 0;
  // This block has not arrived yet, so the count is that of the calls before and less than a call.
  if (threadIdx.x == 0) enough = (LoadAcquire(arrivals) / BLOCKS + 1) * BLOCKS;
  __syncthreads();

  const int thread = threadIdx.x % HALF;
  const int first = thread * WIDTH;
  const int begin = blockIdx.x * SLICE + first;  // where the thread's packs begin, kStep apart
  const int packs = max(0, (ColumnsOf(blockIdx.x) - first + kStep - 1) / kStep);
  if (threadIdx.x < HALF)
    AddRows(x + begin, packs, partial, written + thread / 32);
  else
    WriteRows(x + begin, weight + begin, bias + begin, kept + first, packs, partial, enough,
              out + begin, written + thread / 32);
}
