// A product in float8 with scales for blocks, for few rows of A: pairs of blocks share a tile.
//
// Idea: a tile of 64 columns takes as much of A as of B from the cache. A tile of 128 takes half as
//   much of A, but there are 56 of them for 132 processors. So the blocks of a cluster share a
//   tile: each takes every second block of 128 along k, and both read neighbouring lines of B at
//   about the same time. At the end each block adds half of the rows: it reads the totals of both
//   from shared memory, its own and its neighbour's.
// Prediction: 112% of the library with 64 rows, 90% of the speed of a copy.
// Measured: with 64 rows on an H200 35.3 us, 135.6% of the library, as rung 13: the cache was not
//   what it waited for. In a row 34.9 us, rung 13 33.1. With 16 rows 37.5 and 43.6.
// Sizes: INNER % 128 == 0 and COLUMNS % 128 == 0, by the problem. More than 64 rows are further
//   tiles, which follow each other, so that B comes from the cache.
//! constant ROWS = a.size(0)
//! constant INNER = a.size(1)
//! constant COLUMNS = b.size(0)
//! tensormap a_tiles = a box=(64, 128) swizzle=128
//! tensormap b_tiles = b box=(128, 128) swizzle=128
//! tune     STAGES = 8 6
//! tune     SPLIT = 2
//! dim      tiles = ceil_div(ROWS, 64) * (COLUMNS / 128)
//! launch product grid=(SPLIT*tiles) block=(320) cluster=(SPLIT) shared=STAGES*(24576+272+16) args=(a_tiles, a_scales, b_tiles, b_scales, out)
#define DEVICE __device__ __forceinline__

using Address = unsigned;  // in shared memory
using Descriptor = unsigned long long;
struct alignas(64) TensorMap {
  unsigned long long words[16];
};

constexpr int kTileRows = 64, kTileColumns = 128;  // rows of A, rows of B
constexpr int kDepth = 128;                        // numbers along k in a stage
constexpr int kABytes = kTileRows * kDepth, kBBytes = kTileColumns * kDepth;
constexpr int kStageBytes = kABytes + kBBytes;
constexpr int kScalesBytes = 4 * kTileRows + 16;  // of a stage: rows of A, then B's
constexpr int kBlocks = INNER / kDepth;
constexpr int kGroup = 128, kGroups = 2;      // threads that share an instruction
constexpr int kConsumers = kGroups * kGroup;  // threads; producer and scales follow
constexpr int kSums = kTileColumns / 2;       // of a thread
// A group uses a stage in each of its rounds, or in none: a barrier's parity tells a phase from its
// neighbours only. If a group met every second phase of a stage, it would always wait for the same
// parity, and would take the phase before the one in the making for its own.
static_assert(STAGES % kGroups == 0);
// Totals of a group in shared memory, at the end: rows of floats, so that the banks of a warp's
// pairs differ.
constexpr int kPitch = kTileColumns + 8, kTotalsBytes = kTileRows * kPitch * 4;
static_assert(kGroups * kTotalsBytes <= STAGES * kStageBytes);

DEVICE Address SharedAddress(const void* pointer) {
  return static_cast<Address>(__cvta_generic_to_shared(pointer));
}

constexpr int kTilesDown = (ROWS + kTileRows - 1) / kTileRows;

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

// Arrives once this thread's copies of numbers are there.
DEVICE void ArriveBehindCopies(Address barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
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

// ---- The cluster.

DEVICE int BlockInCluster() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return static_cast<int>(rank);
}

// All threads of all its blocks.
DEVICE void SyncCluster() {
  asm volatile(
      "barrier.cluster.arrive.release;\n"
      "barrier.cluster.wait.acquire;" ::
          : "memory");
}

// Four numbers from this address in a block of the cluster.
DEVICE float4 LoadFourOf(int block, Address source) {
  float4 v;
  asm volatile(
      "{\n.reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %4, %5;\n"
      "ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [there];\n}"
      : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
      : "r"(source), "r"(block));
  return v;
}

// ---- The matrix unit.

// A tile for wgmma: rows of 128 bytes, chunks of 16 bytes swapped within a row as c ^ row % 8,
// eight rows every 1024 bytes, from an address that is a multiple of 1024. Fields: address / 16 in
// bits 0 to 13; 1 (unused here) from bit 16; 1024 / 16 from bit 32; 1 in bits 62 and 63 for this
// swapping. 32 numbers further along k begin 32 bytes on: kStep.
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

// Sums that the instruction wrote are read behind this line only: the compiler does not know when
// they are there.
DEVICE void TakeSums(float (&sum)[kSums]) {
#pragma unroll
  for (int i = 0; i < kSums; ++i) asm volatile("" : "+f"(sum[i])::"memory");
}

#define FOUR(i) "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3])
#define SIXTEEN(i) FOUR(i), FOUR(i + 4), FOUR(i + 8), FOUR(i + 12)

// Starts sum (64 x 128) = a (64 x 32) b^T (128 x 32), added to what sum holds where `add`. Of the
// thread numbered 32 w + 4 g + t, sum[4 j + 2 h + e] is row 16 w + g + 8 h, column 8 j + 2 t + e.
DEVICE void Multiply(float (&sum)[64], Descriptor a, Descriptor b, int add) {
  asm volatile(
      "{\n.reg .pred p;\n"
      "setp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, p, 1, 1;\n}"
      : SIXTEEN(0), SIXTEEN(16), SIXTEEN(32), SIXTEEN(48)
      : "l"(a), "l"(b), "r"(add));
}

// ---- Scales and sums.

// Starts to copy a number to shared memory.
DEVICE void CopyNumber(Address target, const float* source) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(target), "l"(source) : "memory");
}

DEVICE float LoadShared(Address source) {
  float value;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(source) : "memory");
  return value;
}

DEVICE void StorePair(Address target, float first, float second) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(target), "f"(first), "f"(second)
               : "memory");
}

// Adds the sums of a block, times their scales, to the totals: the matrix unit keeps 14 bits or so
// of a sum, and never more than 128 products meet in one.
DEVICE void Promote(float (&total)[kSums], const float (&sum)[kSums], float upper, float lower) {
#pragma unroll
  for (int j = 0; j < kTileColumns / 8; ++j) {
    total[4 * j] += sum[4 * j] * upper;
    total[4 * j + 1] += sum[4 * j + 1] * upper;
    total[4 * j + 2] += sum[4 * j + 2] * lower;
    total[4 * j + 3] += sum[4 * j + 3] * lower;
  }
}

// Two numbers rounded to bf16, the first in the lower half.
DEVICE unsigned Pack(float low, float high) {
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

// The threads that multiply. Barrier 0 is __syncthreads()'.
DEVICE void SyncConsumers() { asm volatile("bar.sync 1, %0;" ::"n"(kConsumers) : "memory"); }

extern "C" __global__ void __launch_bounds__(kConsumers + 64, 1)
    product(const __grid_constant__ TensorMap a_tiles, const float* a_scales,
            const __grid_constant__ TensorMap b_tiles, const float* b_scales, unsigned short* out) {
  extern __shared__ __align__(1024) unsigned char shared[];
  const Address stages = SharedAddress(shared);
  const Address numbers = stages + STAGES * kStageBytes;  // scales
  const Address full = numbers + STAGES * kScalesBytes;   // a barrier of 8 bytes a stage
  const Address empty = full + 8 * STAGES;                // another
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; ++stage) {
      InitBarrier(full + 8 * stage, 1 + 32);  // of the producer's thread, of the scales' warp
      InitBarrier(empty + 8 * stage, kGroup / 32);
    }
    FenceBarrierInit();
  }
  __syncthreads();
  const int here = BlockInCluster(), tile = blockIdx.x / SPLIT;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int row = tile % kTilesDown * kTileRows, column = tile / kTilesDown * kTileColumns;
  Ring ring;
  if (warp == kConsumers / 32) {
    if (lane == 0) {
      for (int block = here; block < kBlocks; block += SPLIT, ring.Advance()) {
        // Parity 1 of a fresh barrier counts as ended: the first round finds all stages empty.
        Wait(empty + 8 * ring.stage, ring.parity ^ 1);
        const Address tiles = stages + ring.stage * kStageBytes, barrier = full + 8 * ring.stage;
        ArriveExpecting(barrier, kStageBytes);
        LoadBox(tiles + kABytes, b_tiles, block * kDepth, column, barrier);
        LoadBox(tiles, a_tiles, block * kDepth, row, barrier);
      }
    }
  } else if (warp > kConsumers / 32) {
    const float* const tile_scales = b_scales + (long long)(column / 128) * kBlocks;
    for (int block = here; block < kBlocks; block += SPLIT, ring.Advance()) {
      Wait(empty + 8 * ring.stage, ring.parity ^ 1);
      const Address target = numbers + ring.stage * kScalesBytes;
      const float* const of_block = a_scales + (long long)block * ROWS;
#pragma unroll
      for (int i = lane; i < kTileRows; i += 32)  // past the end: the last row's
        CopyNumber(target + 4 * i, of_block + min(row + i, ROWS - 1));
      if (lane == 0) CopyNumber(target + 4 * kTileRows, tile_scales + block);
      ArriveBehindCopies(full + 8 * ring.stage);
    }
  } else {
    const int group = threadIdx.x / kGroup, g = lane / 4, t = lane % 4;
    const int r = threadIdx.x % kGroup / 32 * 16 + g;  // in the tile; the other is r + 8
    float sum[kSums], total[kSums] = {};
    for (int i = 0; i < group; ++i) ring.Advance();
    for (int block = here + group * SPLIT; block < kBlocks; block += kGroups * SPLIT) {
      Wait(full + 8 * ring.stage, ring.parity);
      const Address a_tile = stages + ring.stage * kStageBytes, b_tile = a_tile + kABytes;
      const Descriptor a = DescriptorOf(a_tile), b = DescriptorOf(b_tile);
      FenceSums();
#pragma unroll
      for (int step = 0; step < kDepth / 32; ++step)
        Multiply(sum, a + step * kStep, b + step * kStep, step > 0);
      CommitMultiplies();
      const Address scales = numbers + ring.stage * kScalesBytes;
      const float b_scale = LoadShared(scales + 4 * kTileRows);
      const float upper = LoadShared(scales + 4 * r) * b_scale;
      const float lower = LoadShared(scales + 4 * r + 32) * b_scale;
      WaitMultiplies<0>();
      __syncwarp();  // all lanes have their scales
      if (lane == 0) Arrive(empty + 8 * ring.stage);
      TakeSums(sum);
      Promote(total, sum, upper, lower);
      for (int i = 0; i < kGroups; ++i) ring.Advance();
    }
    SyncConsumers();  // no stage is in use any more: totals take their place
    const Address at = stages + group * kTotalsBytes + 4 * (r * kPitch + 2 * t);
#pragma unroll
    for (int j = 0; j < kTileColumns / 8; ++j) {
      StorePair(at + 32 * j, total[4 * j], total[4 * j + 1]);
      StorePair(at + 32 * j + 4 * 8 * kPitch, total[4 * j + 2], total[4 * j + 3]);
    }
  }
  SyncCluster();
  if (threadIdx.x < kConsumers) {
    // Every SPLIT-th row is this block's to add. All parts are asked for before one is used.
    constexpr int kFoursInRow = kTileColumns / 4, kFours = kTileRows / SPLIT * kFoursInRow;
    constexpr int kTrips = (kFours + kConsumers - 1) / kConsumers, kParts = SPLIT * kGroups;
    float4 part[kTrips][kParts];
#pragma unroll
    for (int trip = 0; trip < kTrips; ++trip) {
      const int four = min(static_cast<int>(threadIdx.x) + trip * kConsumers, kFours - 1);
      const int i = four / kFoursInRow * SPLIT + here, c = four % kFoursInRow * 4;
#pragma unroll
      for (int p = 0; p < kParts; ++p)
        part[trip][p] =
            LoadFourOf(p / kGroups, stages + p % kGroups * kTotalsBytes + 4 * (i * kPitch + c));
    }
#pragma unroll
    for (int trip = 0; trip < kTrips; ++trip) {
      const int four = threadIdx.x + trip * kConsumers;
      const int i = four / kFoursInRow * SPLIT + here, c = four % kFoursInRow * 4;
      float4 total = part[trip][0];
#pragma unroll
      for (int p = 1; p < kParts; ++p) {
        const float4 v = part[trip][p];
        total = {total.x + v.x, total.y + v.y, total.z + v.z, total.w + v.w};
      }
      const uint2 rounded = {Pack(total.x, total.y), Pack(total.z, total.w)};
      if (four < kFours && row + i < ROWS)
        *reinterpret_cast<uint2*>(out + (long long)(row + i) * COLUMNS + column + c) = rounded;
    }
  }
  SyncCluster();  // a block stays until the others have read its totals
}
