// LayerNorm over rows of 4.2 million values, rows that stream through a ring in shared memory.
//
// Idea: no value of x is read twice, from L2 either. x goes through 224 KB of shared memory, a ring
// of 1.8 rows: the warps that add read each batch there as it comes in; the warps that write read
// it again when the row's mean is known, and start the copy of what comes 1.8 rows later to the
// same place. The ring sets the pace, and no other counter. The weights and biases move to
// registers: 12 of 32 loads of each thread. The others come from L2, which has nothing else to
// keep.
// Prediction: 220% of the library, 92% of the speed of a copy: 205 us. The ring has room for 0.8 of
// a row beside the one that is written, 4 us of reads, about as long as a barrier lasts.
// Measured: 0.275 and 0.277 ms in two runs on an H100, 166% and 165% of the library, 69% of the
// speed of a copy, not 92%: 1.15 times as fast as rung 13. Nsight counts 619 MB to and from DRAM,
// 115 MB fewer than in rung 14. The 49 MB that are left above 570 are likely weights and biases
// that L2 did not keep. Memory ran at 2.25 TB/s, 75% of a copy. With weights and biases marked as
// the last to leave L2 it takes 0.334 ms.
// Takes rows of a number of columns that is a multiple of 4, up to 56 * WRITERS * WIDTH * BLOCKS
// (7,569,408).
// RING: batches in shared memory; a row has 8. KEPT: loads of weights and biases in registers.
//! constant ROWS = x.size(0)
//! constant COLUMNS = x.size(1) * x.size(2) * x.size(3)
//! tune     ADDERS = 128 64
//! tune     WRITERS = 256
//! tune     BLOCKS = 132
//! tune     KEPT_MAX = 12 8
//! constant WIDTH = 4 - 3 * min(COLUMNS % 4, 1)
//! constant SLICE = WIDTH * ceil_div(COLUMNS, WIDTH * BLOCKS)
//! constant EACH = ceil_div(SLICE, WRITERS * WIDTH)
//! constant KEPT = min(EACH, KEPT_MAX)
//! constant RING = 231424 / (16 * WRITERS * WIDTH)
//! scratch  partial float[ROWS * BLOCKS * 2]
//! dim      all = ADDERS + WRITERS
//! dim      held = 16 * WRITERS * WIDTH * RING
//! launch layer_norm grid=BLOCKS block=all shared=held args=(x,norm_weight,norm_bias,partial,out)

static_assert(WIDTH == 4,
              "cp.async copies 16 bytes: the number of columns must be a multiple of 4");

// SLICE: columns of a row that a block takes; the last blocks of a short row have fewer or none.
// EACH: loads of a thread that writes. BLOCKS: no more than the GPU has multiprocessors (132 on an
// H100 or H200 SXM).
__device__ int ColumnsOf(int block) { return max(0, min(SLICE, COLUMNS - block * SLICE)); }

constexpr float kEpsilon = 1e-5f;                       // nn.LayerNorm's default
constexpr int kBatch = 4;                               // loads at once
constexpr int kStep = WRITERS * WIDTH;                  // columns between a writer's loads
constexpr int kAddStep = ADDERS * WIDTH;                // columns between an adder's loads
constexpr int kColumns = kBatch * kStep;                // columns of a batch
constexpr int kBatches = (EACH + kBatch - 1) / kBatch;  // of a row
constexpr int kWarps = ADDERS / 32;                     // that add
constexpr int kPollsMax = 1 << 22;                      // then a wait ends in a trap
static_assert(RING >= kBatches, "the ring holds a row");
static_assert(WRITERS % ADDERS == 0, "an adder takes a whole number of a batch's loads");

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

// Over all threads that add. `turn` alternates between two places, so that one barrier is enough:
// who is a row ahead writes to the other place.
__device__ Moments OverAdders(Moments moments, int turn) {
  __shared__ Moments of_warp[2][kWarps];
  const int lane = threadIdx.x % 32;
  moments = OverWarp(moments);
  if (lane == 0) of_warp[turn][threadIdx.x / 32] = moments;
  SyncSome(1, ADDERS);
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

// A barrier in shared memory whose phase ends with so many arrivals.
__device__ void InitBarrier(unsigned long long* barrier, int arrivals_of_phase) {
  const auto address = static_cast<unsigned int>(__cvta_generic_to_shared(barrier));
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address), "r"(arrivals_of_phase)
               : "memory");
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

// Arrives at the barrier once all copies that this thread has started are done.
__device__ void ArriveWhenCopied(unsigned long long* barrier) {
  const auto address = static_cast<unsigned int>(__cvta_generic_to_shared(barrier));
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(address) : "memory");
}

__device__ bool PhaseHasEnded(unsigned long long* barrier, unsigned int parity) {
  const auto address = static_cast<unsigned int>(__cvta_generic_to_shared(barrier));
  unsigned int ended;
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n"
      "}"
      : "=r"(ended)
      : "r"(address), "r"(parity)
      : "memory");
  return ended != 0;
}

// A place in the ring, and the parity of the phase in which the next batch comes there.
struct Place {
  int slot = 0;
  unsigned int parity = 0;
};

__device__ void Advance(Place& place) {
  if (++place.slot == RING) place.slot = 0, place.parity ^= 1;
}

__device__ void WaitForBatch(unsigned long long* arrived, Place place) {
  int polls = 0;
  while (!PhaseHasEnded(arrived + place.slot, place.parity))
    if (++polls == kPollsMax) __trap();
}

// The warps that add. They wait for nothing but batches.
__device__ void AddRows(const float* ring, unsigned long long* arrived, int columns,
                        float2* partial) {
  constexpr int kLoads = kColumns / kAddStep;  // of a batch, a thread
  Place place;
  for (int row = 0; row < ROWS; ++row) {
    Moments moments;
    for (int batch = 0; batch < kBatches; ++batch, Advance(place)) {
      const int left = columns - batch * kColumns - threadIdx.x * WIDTH;
      const int packs = left <= 0 ? 0 : (left + kAddStep - 1) / kAddStep;
      WaitForBatch(arrived, place);
#pragma unroll
      for (int begin = 0; begin < kLoads; begin += kBatch) {
        float values[kBatch][WIDTH];
#pragma unroll
        for (int i = 0; i < kBatch; ++i)
          if (begin + i < packs)
            Load(ring + place.slot * kColumns + (begin + i) * kAddStep, values[i]);
        moments = Merge(moments, MomentsOf(values, min(kBatch, packs - begin)));
      }
    }
    moments = OverAdders(moments, row % 2);
    if (threadIdx.x == 0) {
      partial[row * BLOCKS + blockIdx.x] = make_float2(moments.mean, moments.squares);
      CountUp(arrivals + row);
    }
  }
}

// Starts the copies of one batch of the thread's packs.
__device__ void CopyBatch(float* to, const float* from, int packs, unsigned long long* arrived) {
#pragma unroll
  for (int i = 0; i < kBatch; ++i)
    if (i < packs) CopyAhead(to + i * kStep, from + i * kStep);
  ArriveWhenCopied(arrived);
}

// The warps that write, and fill the ring: each thread copies only what it will read itself.
__device__ void WriteRows(const float* x, const float* weight, const float* bias, float* ring,
                          unsigned long long* arrived, int packs, const float2* partial,
                          unsigned long long enough, float* out) {
#pragma unroll
  for (int slot = 0; slot < min(RING, ROWS * kBatches); ++slot) {
    const int row = slot / kBatches, pack = slot % kBatches * kBatch;
    CopyBatch(ring + slot * kColumns, x + row * COLUMNS + pack * kStep, packs - pack,
              arrived + slot);
  }
  float kept_weights[KEPT][WIDTH], kept_biases[KEPT][WIDTH];
#pragma unroll
  for (int i = 0; i < KEPT; ++i) {
    if (i >= packs) continue;
    Load(weight + i * kStep, kept_weights[i]);
    Load(bias + i * kStep, kept_biases[i]);
  }

  Place place;
  for (int row = 0; row < ROWS; ++row, x += COLUMNS, out += COLUMNS) {
    if (threadIdx.x == ADDERS) WaitForAll(row, enough);
    SyncSome(2, WRITERS);
    const Moments moments = OverGrid(partial + row * BLOCKS);
    const float scale = rsqrtf(moments.squares / COLUMNS + kEpsilon);
#pragma unroll
    for (int batch = 0; batch < kBatches; ++batch, Advance(place)) {
      float weights[kBatch][WIDTH], biases[kBatch][WIDTH];
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        const int pack = batch * kBatch + i;
        if (pack < KEPT || pack >= packs) continue;
        Load(weight + pack * kStep, weights[i]);
        Load(bias + pack * kStep, biases[i]);
      }
      WaitForBatch(arrived, place);  // it has come: those that add have waited for it
      float* const from = ring + place.slot * kColumns;
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        const int pack = batch * kBatch + i;
        if (pack >= packs) continue;
        float values[WIDTH];
        Load(from + i * kStep, values);
        for (int j = 0; j < WIDTH; ++j) {
          const float w = pack < KEPT ? kept_weights[min(pack, KEPT - 1)][j] : weights[i][j];
          const float b = pack < KEPT ? kept_biases[min(pack, KEPT - 1)][j] : biases[i][j];
          values[j] = (values[j] - moments.mean) * scale * w + b;
        }
        Store(out + pack * kStep, values);
      }
      const int ahead = (batch + RING) / kBatches;  // rows
      const int pack = (batch + RING) % kBatches * kBatch;
      if (row + ahead < ROWS)
        CopyBatch(from, x + ahead * COLUMNS + pack * kStep, packs - pack, arrived + place.slot);
    }
  }
}

extern "C" __global__ void __launch_bounds__(ADDERS + WRITERS, 1)
    layer_norm(const float* __restrict__ x, const float* __restrict__ weight,
               const float* __restrict__ bias, float2* partial, float* __restrict__ out) {
  extern __shared__ __align__(128) float ring[];
  __shared__ unsigned long long arrived[RING];  // of each place's batch
  __shared__ unsigned long long enough;         // arrivals of this call's blocks and all before
  if (threadIdx.x == 0) {
    for (int slot = 0; slot < RING; ++slot) InitBarrier(arrived + slot, WRITERS);
    // This block has not arrived yet, so the count is that of the calls before and less than a
    // call.
    enough = (LoadAcquire(arrivals) / BLOCKS + 1) * BLOCKS;
  }
  __syncthreads();

  const int columns = ColumnsOf(blockIdx.x);
  if (threadIdx.x < ADDERS) {
    AddRows(ring + threadIdx.x * WIDTH, arrived, columns, partial);
  } else {
    const int first = (threadIdx.x - ADDERS) * WIDTH;
    const int begin = blockIdx.x * SLICE + first;  // where the thread's packs begin, kStep apart
    const int packs = max(0, (columns - first + kStep - 1) / kStep);
    WriteRows(x + begin, weight + begin, bias + begin, ring + first, arrived, packs, partial,
              enough, out + begin);
  }
}
