// A product in float8 with scales for blocks: half a tile is written while the other is multiplied.
//
// Idea: a group's totals are two halves of 64 rows. The first is complete while the second's last
//   products are at work, and the second waits for nothing once the next tile's first products are
//   started. So each half is rounded and handed over behind the start of the other's products, and
//   the matrix unit has work when a tile ends.
// Prediction: 109% of the library: the end of a tile took 3% of it or so.
// Measured: on an H200 122.8 us, 95.6% of the library: 0.4% less than rung 11's time. ncu counts 207
//   thousand clocks, the caches cold; the products need 131. The cache is at 41% of its peak, memory
//   at 12%. Called 20 times in a row it takes 143 us, and the library 124.
// Sizes: INNER % 128 == 0 and COLUMNS % 128 == 0, by the problem.
//! constant ROWS = a.size(0)
//! constant INNER = a.size(1)
//! constant COLUMNS = b.size(0)
//! tensormap a_tiles = a box=(128, 128) swizzle=128
//! tensormap b_tiles = b box=(128, 128) swizzle=128
//! tensormap out_tiles = out box=(64, 64) swizzle=128
//! tune     STAGES = 4
//! tune     PROCESSORS = 132 128
//! tune     DOWN = 8 4 16
//! tune     TURNS = 1 0
//! dim      tiles = ceil_div(ROWS, 256) * ceil_div(COLUMNS, 256)
//! launch product grid=(2 * min(PROCESSORS / 2, tiles)) block=(384) cluster=(2) shared=STAGES*49152+32768+2*1040+16*STAGES+16 args=(a_tiles, a_scales, b_tiles, b_scales, out_tiles)
#define DEVICE __device__ __forceinline__

using Address = unsigned;  // in shared memory
using Descriptor = unsigned long long;
struct alignas(64) TensorMap {
  unsigned long long words[16];
};

constexpr int kTileRows = 256, kTileColumns = 128;  // rows of A, rows of B
constexpr int kDepth = 128;                         // numbers along k in a stage
constexpr int kABytes = kTileRows * kDepth, kBBytes = kTileColumns * kDepth;
constexpr int kStageBytes = kABytes + kBBytes;
constexpr int kBlocksInCluster = 2, kClusterColumns = kBlocksInCluster * kTileColumns;
constexpr int kShareRows = kTileRows / kBlocksInCluster;  // of A, that a block fetches for both
// Of C: two boxes of 64 rows are what a consumer group lays out at once.
constexpr int kBoxColumns = 64, kBoxes = 2, kBoxBytes = 64 * kBoxColumns * 2;
constexpr int kBlocks = INNER / kDepth;
// Scales of a block along k: one for each row of A in the tile, then B's.
constexpr int kPlaces = 2, kPlaceBytes = 4 * kTileRows + 16;
constexpr int kGroup = 128;              // threads that share an instruction
constexpr int kConsumers = 2 * kGroup;   // threads; the producer's group is the first
constexpr int kWaves = 2;                // instructions of 64 rows that a group needs for its rows
constexpr int kGroupRows = 64 * kWaves;  // of A, of a group

DEVICE Address SharedAddress(const void* pointer) {
  return static_cast<Address>(__cvta_generic_to_shared(pointer));
}

// Tiles of a cluster.
constexpr int kTilesDown = (ROWS + kTileRows - 1) / kTileRows;
constexpr int kTilesAcross = (COLUMNS + kClusterColumns - 1) / kClusterColumns;
constexpr int kTiles = kTilesDown * kTilesAcross;

struct Place {
  int row, column;  // in C
};

// Bands of DOWN rows of tiles, each column by column; the last band may be lower.
DEVICE Place PlaceOf(int tile) {
  const int band = tile / (DOWN * kTilesAcross), in_band = tile % (DOWN * kTilesAcross);
  const int height = min(kTilesDown - band * DOWN, DOWN);
  return {(band * DOWN + in_band % height) * kTileRows, in_band / height * kClusterColumns};
}

// A stage of a ring, and the parity of its barriers there.
template <int stages>
struct Ring {
  int stage = 0;
  unsigned parity = 0;
  DEVICE void Advance() {
    if (++stage == stages) {
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

// Arrives at the barrier that lies at this address in a block of the cluster.
DEVICE void ArriveIn(int block, Address barrier) {
  asm volatile(
      "{\n.reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(barrier),
      "r"(block)
      : "memory");
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

// The same into every block of the cluster: each gets the bytes at this address of its own, and
// counts them with the barrier at this address of its own.
DEVICE void LoadBoxForAll(Address target, const TensorMap& map, int k, int row, Address barrier) {
  constexpr unsigned short kAll = (1 << kBlocksInCluster) - 1;
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(target),
      "l"(&map), "r"(k), "r"(row), "r"(barrier), "h"(kAll)
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
DEVICE void TakeSums(float (&sum)[64]) {
#pragma unroll
  for (int i = 0; i < 64; ++i) asm volatile("" : "+f"(sum[i])::"memory");
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

// ---- Registers of a group of 128 threads: 3 x 168 at the start, 40 + 2 x 232 then.

template <int count>
DEVICE void ShrinkRegisters() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}

template <int count>
DEVICE void GrowRegisters() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}

// ---- Turns. A group waits for its turn, and passes it on to the other. A turn has a barrier of
// the group that waits and the group that arrives.

DEVICE void AwaitTurn(int group) {
  if (TURNS) asm volatile("bar.sync %0, %1;" ::"r"(2 + group), "n"(kConsumers) : "memory");
}

DEVICE void PassTurn(int group) {
  if (TURNS) asm volatile("bar.arrive %0, %1;" ::"r"(5 - group), "n"(kConsumers) : "memory");
}

// ---- Scales. A thread has two rows of an instruction's 64: g and g + 8 of its warp's 16.

// Starts to copy a number to shared memory.
DEVICE void CopyNumber(Address target, const float* source) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(target), "l"(source) : "memory");
}

DEVICE float LoadShared(Address source) {
  float value;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(source) : "memory");
  return value;
}

struct Scales {
  float upper, lower;  // of A's rows g and g + 8, times B's
};

// Adds the sums of a block, times their scales, to the totals: the matrix unit keeps 14 bits or so
// of a sum, and never more than 128 products meet in one.
DEVICE void Promote(float (&total)[64], const float (&sum)[64], const Scales& scales) {
#pragma unroll
  for (int j = 0; j < 16; ++j) {
    total[4 * j] += sum[4 * j] * scales.upper;
    total[4 * j + 1] += sum[4 * j + 1] * scales.upper;
    total[4 * j + 2] += sum[4 * j + 2] * scales.lower;
    total[4 * j + 3] += sum[4 * j + 3] * scales.lower;
  }
}

// ---- The result.

// Two numbers rounded to bf16, the first in the lower half.
DEVICE unsigned Pack(float low, float high) {
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

DEVICE void StoreShared(Address target, unsigned value) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(target), "r"(value) : "memory");
}

// Shows this thread's writes to shared memory to the copy engine.
DEVICE void FenceForCopies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// The threads of a group. Barrier 0 is __syncthreads()'.
DEVICE void SyncGroup(int group) {
  asm volatile("bar.sync %0, %1;" ::"r"(group), "n"(kGroup) : "memory");
}

// Starts to write a box of C; what lies beyond the matrix is left out.
DEVICE void StoreBox(Address source, const TensorMap& map, int row, int column) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map),
      "r"(column), "r"(row), "r"(source)
      : "memory");
}

DEVICE void CommitStores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// Waits until this thread's stores have read shared memory.
DEVICE void WaitStoresRead() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }

// Waits until this thread's stores are done.
DEVICE void WaitStores() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

// What a group knows of the boxes that it lays out.
struct Boxes {
  Address at;
  int group;
  bool stores;  // this thread starts the group's stores

  // Rounds totals of 64 rows from `row` on and starts to write them. Zeros them.
  DEVICE void Store(float (&total)[64], const TensorMap& map, int row, int column) const {
    const int warp = threadIdx.x % kGroup / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    if (stores) WaitStoresRead();  // the boxes are free again
    SyncGroup(group);
#pragma unroll
    for (int j = 0; j < kTileColumns / 8; ++j) {  // chunks of 8 columns
      float* const part = &total[4 * j];
      // Rows of 128 bytes; chunk c of row r lies at c ^ r % 8, and r % 8 is g.
      const Address target =
          at + j / 8 * kBoxBytes + (16 * warp + g) * 128 + (j % 8 ^ g) * 16 + 4 * t;
      StoreShared(target, Pack(part[0], part[1]));
      StoreShared(target + 8 * 128, Pack(part[2], part[3]));
      part[0] = part[1] = part[2] = part[3] = 0;
    }
    FenceForCopies();
    SyncGroup(group);
    if (stores && row < ROWS && column < COLUMNS) {
      for (int box = 0; box < kBoxes; ++box)
        StoreBox(at + box * kBoxBytes, map, row, column + box * kBoxColumns);
      CommitStores();
    }
  }
};

extern "C" __global__ void __launch_bounds__(kGroup + kConsumers, 1)
    product(const __grid_constant__ TensorMap a_tiles, const float* a_scales,
            const __grid_constant__ TensorMap b_tiles, const float* b_scales,
            const __grid_constant__ TensorMap out_tiles) {
  extern __shared__ __align__(1024) unsigned char shared[];
  const Address stages = SharedAddress(shared);
  const Address boxes = stages + STAGES * kStageBytes;
  const Address places = boxes + 2 * kBoxes * kBoxBytes;  // of scales
  const Address full = places + kPlaces * kPlaceBytes;    // a barrier of 8 bytes a stage
  const Address empty = full + 8 * STAGES;                // another
  const Address free = empty + 8 * STAGES;                // one a place of scales
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; ++stage) {
      InitBarrier(full + 8 * stage, 1 + 32);  // of the producer's thread, of the scales' warp
      InitBarrier(empty + 8 * stage, kBlocksInCluster * kConsumers / 32);
    }
    for (int place = 0; place < kPlaces; ++place) InitBarrier(free + 8 * place, kConsumers / 32);
    FenceBarrierInit();
  }
  SyncCluster();  // no barrier is used before both blocks have made theirs
  const int here = BlockInCluster();
  const int cluster = blockIdx.x / kBlocksInCluster, clusters = gridDim.x / kBlocksInCluster;
  Ring<STAGES> ring;
  Ring<kPlaces> ring_of_scales;
  if (threadIdx.x < kGroup) {
    ShrinkRegisters<40>();
    if (threadIdx.x == 0) {
      const int share = here * kShareRows;  // of A: this block's rows of the tile
      for (int tile = cluster; tile < kTiles; tile += clusters) {
        const Place place = PlaceOf(tile);
        const int column = place.column + here * kTileColumns;
        for (int block = 0; block < kBlocks; ++block, ring.Advance()) {
          // Parity 1 of a fresh barrier counts as ended: the first round finds all stages empty.
          Wait(empty + 8 * ring.stage, ring.parity ^ 1);
          const Address tiles = stages + ring.stage * kStageBytes, barrier = full + 8 * ring.stage;
          ArriveExpecting(barrier, kStageBytes);  // the neighbour's half of A included
          LoadBoxForAll(tiles + share * kDepth, a_tiles, block * kDepth, place.row + share,
                        barrier);
          LoadBox(tiles + kABytes, b_tiles, block * kDepth, column, barrier);
        }
      }
    } else if (threadIdx.x / 32 == 1) {
      const int lane = threadIdx.x % 32;
      for (int tile = cluster; tile < kTiles; tile += clusters) {
        const Place place = PlaceOf(tile);
        const int column = place.column + here * kTileColumns;
        const float* const tile_scales =
            b_scales + min(column, COLUMNS - kTileColumns) / kTileColumns * kBlocks;
        for (int block = 0; block < kBlocks; ++block, ring.Advance(), ring_of_scales.Advance()) {
          Wait(free + 8 * ring_of_scales.stage, ring_of_scales.parity ^ 1);
          const Address target = places + ring_of_scales.stage * kPlaceBytes;
          const float* const of_block = a_scales + (long long)block * ROWS;
#pragma unroll
          for (int row = lane; row < kTileRows; row += 32)  // past the end: the last row's
            CopyNumber(target + 4 * row, of_block + min(place.row + row, ROWS - 1));
          if (lane == 0) CopyNumber(target + 4 * kTileRows, tile_scales + block);
          ArriveBehindCopies(full + 8 * ring.stage);
        }
      }
    }
  } else {
    GrowRegisters<232>();
    const int group = threadIdx.x / kGroup;          // 1 or 2
    const int group_row = (group - 1) * kGroupRows;  // in the tile
    const Boxes group_boxes = {boxes + (group - 1) * kBoxes * kBoxBytes, group,
                               threadIdx.x % kGroup == 0};
    const int warp = threadIdx.x % kGroup / 32, lane = threadIdx.x % 32, g = lane / 4;
    float sum[64], total[kWaves][64] = {};
    int row_before = ROWS, column_before = 0;  // of the tile before: there is none
    if (group == 2) PassTurn(group);           // the first turn is the first group's
    for (int tile = cluster; tile < kTiles; tile += clusters) {
      const Place place = PlaceOf(tile);
      const int column = place.column + here * kTileColumns;  // COLUMNS or more: none of C
      const int row = place.row + group_row;
      for (int block = 0; block < kBlocks; ++block, ring.Advance(), ring_of_scales.Advance()) {
        Wait(full + 8 * ring.stage, ring.parity);
        const Address a_tile = stages + ring.stage * kStageBytes, b_tile = a_tile + kABytes;
        const Descriptor b = DescriptorOf(b_tile);
        Scales scales[kWaves];
#pragma unroll
        for (int wave = 0; wave < kWaves; ++wave) {
          const Descriptor a = DescriptorOf(a_tile + (group_row + 64 * wave) * kDepth);
          AwaitTurn(group);
          FenceSums();
#pragma unroll
          for (int step = 0; step < kDepth / 32; ++step)
            Multiply(sum, a + step * kStep, b + step * kStep, step > 0);
          CommitMultiplies();
          PassTurn(group);
          if (wave == 0) {  // while the unit works
            const Address numbers = places + ring_of_scales.stage * kPlaceBytes;
            const float b_scale = LoadShared(numbers + 4 * kTileRows);
#pragma unroll
            for (int i = 0; i < kWaves; ++i) {
              const Address number = numbers + 4 * (group_row + 64 * i + 16 * warp + g);
              scales[i] = {LoadShared(number) * b_scale, LoadShared(number + 4 * 8) * b_scale};
            }
            __syncwarp();
            if (lane == 0) Arrive(free + 8 * ring_of_scales.stage);
            if (block == 0) group_boxes.Store(total[1], out_tiles, row_before + 64, column_before);
          } else if (block == kBlocks - 1) {
            group_boxes.Store(total[0], out_tiles, row, column);
          }
          WaitMultiplies<0>();
          if (wave == kWaves - 1 && lane < kBlocksInCluster) ArriveIn(lane, empty + 8 * ring.stage);
          TakeSums(sum);
          Promote(total[wave], sum, scales[wave]);
        }
      }
      row_before = row;
      column_before = column;
      // The block stays until its last boxes are written. Behind the loop, these lines would cost
      // the compiler's leave to use 232 registers.
      if (tile + clusters >= kTiles) {
        group_boxes.Store(total[1], out_tiles, row + 64, column);
        if (group_boxes.stores) WaitStores();
      }
    }
  }
  SyncCluster();  // a block stays until its neighbour has made its last arrival here
}
