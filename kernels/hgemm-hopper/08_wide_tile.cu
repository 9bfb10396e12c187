// Idea: a larger tile, 128 x 256, for two groups of consumers of 64 rows each. For every 48 KB that
//   are fetched the matrix unit works 1024 clocks (32 KB for 512 before), and while one group waits
//   for its products, the other's fill the unit. The sums take 128 registers a thread; setmaxnreg
//   moves registers from the group of the producer, which needs few, to the consumers.
// Prediction: 85% of the library. A third less traffic for the same work, and no idle unit between
//   blocks; what remains is the start and the end of each tile, in turn with nothing else to do.
// Measured: 226 us, 78% of the library, 67% of the peak, not 85%. Likely: the cache again, with a
//   quarter less to fetch (1.6 GB, 7.1 TB/s; a test of reads alone gave 7.3).
// Sizes: INNER % 8 == 0, since rows of A and B must be a multiple of 16 bytes long.
//! constant ROWS = a.size(0)
//! constant INNER = a.size(1)
//! constant COLUMNS = b.size(0)
//! tensormap a_tiles = a box=(128, 64) swizzle=128
//! tensormap b_tiles = b box=(256, 64) swizzle=128
//! tune     STAGES = 4
//! launch product grid=(ceil_div(COLUMNS, 256), ceil_div(ROWS, 128)) block=(384) shared=STAGES*49152+64 args=(a_tiles, b_tiles, out)
#define DEVICE __device__ __forceinline__

using BFloat16 = unsigned short;  // its bits
using Address = unsigned;         // in shared memory
using Descriptor = unsigned long long;
struct alignas(64) TensorMap {
  unsigned long long words[16];
};

constexpr int kTileRows = 128, kTileColumns = 256;  // rows of A, rows of B
constexpr int kDepth = 64;                          // elements along k in a stage
constexpr int kABytes = kTileRows * kDepth * 2, kBBytes = kTileColumns * kDepth * 2;
constexpr int kStageBytes = kABytes + kBBytes;
constexpr int kBlocks = (INNER + kDepth - 1) / kDepth;  // along k
constexpr int kGroup = 128;                             // threads that share an instruction
constexpr int kGroupRows = 64;                          // of A, in an instruction
constexpr int kConsumers = 2 * kGroup;  // threads; the producer's group is the first

DEVICE Address SharedAddress(const void* pointer) {
  return static_cast<Address>(__cvta_generic_to_shared(pointer));
}

// A place in the ring of stages, and the parity of its barriers there.
struct Ring {
  int stage = 0;
  unsigned parity = 0;
  DEVICE void Advance() {
    if (++stage == STAGES) {
      stage = 0;
      parity ^= 1;
    }
  }
};

// ---- Barriers in shared memory. A phase ends when all arrivals and all expected bytes are there.

DEVICE void InitBarrier(Address barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

// Shows initialised barriers to the copy engine; a block's barrier shows them to its threads.
DEVICE void FenceBarrierInit() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

DEVICE void Arrive(Address barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Arrives, and adds `bytes` to what the phase waits for.
DEVICE void ArriveExpecting(Address barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

// True once the phase of this parity has ended; may suspend the thread for a while first.
DEVICE bool HasEnded(Address barrier, unsigned parity) {
  unsigned ended;
  asm volatile(
      "{\n.reg .pred p;\n"
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n}"
      : "=r"(ended)
      : "r"(barrier), "r"(parity)
      : "memory");
  return ended != 0;
}

// Waits for the end of the phase of this parity. A wait without end is a bug: it ends in a trap.
DEVICE void Wait(Address barrier, unsigned parity) {
  for (int tries = 0; !HasEnded(barrier, parity); ++tries)
    if (tries == 1 << 24) __trap();
}

// Starts the copy of a box from element k of row `row` on; it is counted by `barrier` in bytes.
DEVICE void LoadBox(Address target, const TensorMap& map, int k, int row, Address barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%2, %3}], [%4];" ::"r"(target),
      "l"(&map), "r"(k), "r"(row), "r"(barrier)
      : "memory");
}

// ---- The matrix unit.

// A tile for wgmma: rows of 128 bytes, chunks of 16 bytes swapped within a row as c ^ row % 8,
// eight rows every 1024 bytes, from an address that is a multiple of 1024. Fields: address / 16 in
// bits 0 to 13; 1 (unused here) from bit 16; 1024 / 16 from bit 32; 1 in bits 62 and 63 for this
// swapping. Sixteen elements further along k begin 32 bytes on: kStep.
constexpr Descriptor kStep = 32 / 16;
constexpr __host__ __device__ Descriptor DescriptorOf(Address tile) {
  return Descriptor{(tile & 0x3FFFF) >> 4} | Descriptor{1} << 16 | Descriptor{1024 / 16} << 32 |
         Descriptor{1} << 62;
}
static_assert(DescriptorOf(0) == 0x4000004000010000);
static_assert(DescriptorOf(0x400) == 0x4000004000010040);
static_assert(DescriptorOf(227 * 1024) == 0x40000040000138C0);
static_assert(DescriptorOf(0x400) + 3 * kStep == DescriptorOf(0x400 + 96));

// Before the first multiplication, and after sums were touched by other instructions.
DEVICE void FenceSums() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

// The multiplications started since the last call make a group.
DEVICE void CommitMultiplies() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Waits until at most `pending` groups are at work.
template <int pending>
DEVICE void WaitMultiplies() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

#define FOUR(i) "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3])
#define SIXTEEN(i) FOUR(i), FOUR(i + 4), FOUR(i + 8), FOUR(i + 12)

// Starts sum (64 x 256) = a (64 x 16) b^T (256 x 16), added to what sum holds where `add`. Of the
// thread numbered 32 w + 4 g + t, sum[4 j + 2 h + e] is row 16 w + g + 8 h, column 8 j + 2 t + e.
DEVICE void Multiply(float (&sum)[128], Descriptor a, Descriptor b, int add) {
  asm volatile(
      "{\n.reg .pred p;\n"
      "setp.ne.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, "
      "%127}, "
      "%128, %129, p, 1, 1, 0, 0;\n}"
      : SIXTEEN(0), SIXTEEN(16), SIXTEEN(32), SIXTEEN(48), SIXTEEN(64), SIXTEEN(80), SIXTEEN(96),
        SIXTEEN(112)
      : "l"(a), "l"(b), "r"(add));
}

// ---- Registers of a group of 128 threads: 3 x 168 at the start, 40 + 2 x 232 then.

template <int count>
DEVICE void ShrinkRegisters() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}

template <int count>
DEVICE void GrowRegisters() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}

// ---- The result.

// Two numbers rounded to bf16, the first in the lower half.
DEVICE unsigned Pack(float low, float high) {
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

// Writes two neighbours of C; `column` is even.
DEVICE void StorePair(BFloat16* out, int row, int column, float first, float second) {
  if (row >= ROWS || column >= COLUMNS) return;
  const unsigned pair = Pack(first, second);
  BFloat16* at = out + (long long)row * COLUMNS + column;
  if constexpr (COLUMNS % 2 == 0) {
    *reinterpret_cast<unsigned*>(at) = pair;
  } else {
    at[0] = static_cast<BFloat16>(pair);
    if (column + 1 < COLUMNS) at[1] = static_cast<BFloat16>(pair >> 16);
  }
}

extern "C" __global__ void __launch_bounds__(kGroup + kConsumers, 1)
    product(const __grid_constant__ TensorMap a_tiles, const __grid_constant__ TensorMap b_tiles,
            BFloat16* out) {
  extern __shared__ __align__(1024) unsigned char shared[];
  const Address stages = SharedAddress(shared);
  const Address full = stages + STAGES * kStageBytes;  // a barrier of 8 bytes a stage
  const Address empty = full + 8 * STAGES;             // another
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; ++stage) {
      InitBarrier(full + 8 * stage, 1);
      InitBarrier(empty + 8 * stage, kConsumers);
    }
    FenceBarrierInit();
  }
  __syncthreads();
  const int row = blockIdx.y * kTileRows, column = blockIdx.x * kTileColumns;
  Ring ring;
  if (threadIdx.x < kGroup) {
    ShrinkRegisters<40>();
    if (threadIdx.x > 0) return;
    for (int block = 0; block < kBlocks; ++block, ring.Advance()) {
      // Parity 1 of a fresh barrier counts as ended: the first round finds all stages empty.
      Wait(empty + 8 * ring.stage, ring.parity ^ 1);
      const Address tiles = stages + ring.stage * kStageBytes, barrier = full + 8 * ring.stage;
      ArriveExpecting(barrier, kStageBytes);
      LoadBox(tiles, a_tiles, block * kDepth, row, barrier);
      LoadBox(tiles + kABytes, b_tiles, block * kDepth, column, barrier);
    }
  } else {
    GrowRegisters<232>();
    const int group_row = (threadIdx.x / kGroup - 1) * kGroupRows;  // in the tile
    float sum[128];
    for (int block = 0; block < kBlocks; ++block, ring.Advance()) {
      Wait(full + 8 * ring.stage, ring.parity);
      const Address a_tile = stages + ring.stage * kStageBytes, b_tile = a_tile + kABytes;
      const Descriptor a = DescriptorOf(a_tile + group_row * kDepth * 2), b = DescriptorOf(b_tile);
      FenceSums();
#pragma unroll
      for (int step = 0; step < kDepth / 16; ++step)
        Multiply(sum, a + step * kStep, b + step * kStep, block > 0 || step > 0);
      CommitMultiplies();
      WaitMultiplies<0>();
      Arrive(empty + 8 * ring.stage);
    }
    const int warp = threadIdx.x % kGroup / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const int r = row + group_row + 16 * warp + g;
#pragma unroll
    for (int j = 0; j < kTileColumns / 8; ++j) {
      const int c = column + 8 * j + 2 * t;
      StorePair(out, r, c, sum[4 * j], sum[4 * j + 1]);
      StorePair(out, r + 8, c, sum[4 * j + 2], sum[4 * j + 3]);
    }
  }
}
