// LayerNorm over rows of 4.2 million values, registers for those that write.
//
// Idea: 384 threads get 168 registers each, and the warps that add need 40. They give the others
// back (setmaxnreg), those that write take 232, and 21 of 32 loads of weights and biases stay
// there, not 12: L2 hands out 11 MB a row instead of 21.
// Prediction: 225% of the library, 94% of the speed of a copy, if L2 was in the way; if not, what
// rung 15 takes.
// Measured: 0.254 and 0.248 ms in two runs on an H100, 179% and 182% of the library, 75% and 76% of
// the speed of a copy, not 94%: 1.08 and 1.11 times as fast as rung 15, so L2 was in the way.
// Nsight counts 552 MB to and from DRAM: hardly a byte comes twice (results that are still in L2 at
// the end are not counted). Memory ran at 2.2 TB/s, 72% of a copy: likely it still rests at times.
// 60% of all waiting of the 12 warps an SM is for loads from L2 or memory. With weights and biases
// marked as the last to leave L2 it takes 0.261 ms.
// Takes rows of a number of columns that is a multiple of 4, up to 56 * WRITERS * WIDTH * BLOCKS
// (7,569,408).
// RING: batches in shared memory; a row has 8. KEPT: loads of weights and biases in registers.
//! constant ROWS = x.size(0)
//! constant COLUMNS = x.size(1) * x.size(2) * x.size(3)
//! tune     ADDERS = 128
//! tune     WRITERS = 256
//! tune     BLOCKS = 132
//! tune     KEPT_MAX = 21
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
constexpr int kPollsMax = 1 << 22;                      // then a wait ends in a fault
static_assert(RING >= kBatches, "the ring holds a row");
static_assert(WRITERS % ADDERS == 0, "an adder takes a whole number of a batch's loads");

// Ends the kernel with a fault: a write to no address. Beside a __trap the compiler would leave
// everybody 168 registers.
__device__ void Fail() { *static_cast<volatile int*>(nullptr) = 0; }

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
// stream is over. Where that does not hold, the wait ends in a fault after some seconds instead of
// never.
__device__ void WaitForAll(int row, unsigned long long enough) {
  int polls = 0;
  while (LoadAcquire(arrivals + row) < enough)
    if (++polls == kPollsMax) Fail();
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
    if (++polls == kPollsMax) Fail();
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

// Of three warpgroups with 168 registers a thread: the one that adds keeps 40, the two that write
// take 232 each. By all warps of a warpgroup.
__device__ void KeepRegisters() { asm volatile("setmaxnreg.dec.sync.aligned.u32 40;"); }
__device__ void TakeRegisters() { asm volatile("setmaxnreg.inc.sync.aligned.u32 232;"); }
static_assert(ADDERS == 128 && WRITERS == 256, "registers move between whole warpgroups");

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
    KeepRegisters();
    AddRows(ring + threadIdx.x * WIDTH, arrived, columns, partial);
  } else {
    TakeRegisters();
    const int first = (threadIdx.x - ADDERS) * WIDTH;
    const int begin = blockIdx.x * SLICE + first;  // where the thread's packs begin, kStep apart
    const int packs = max(0, (columns - first + kStep - 1) / kStep);
    WriteRows(x + begin, weight + begin, bias + begin, ring + first, arrived, packs, partial,
              enough, out + begin);
  }
}
