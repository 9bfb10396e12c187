// Many rows times a matrix: the product of `hgemm-hopper` (its rung 14), as in `swiglu` (its rung 06).
//
// Idea: clusters of two blocks share tiles of the weights; warps that only copy feed warps that only
//   multiply; the copy engine writes.
// Sizes: multiples of 8 features and of 8 outputs, since rows must be a multiple of 16 bytes long.
//! constant ROWS = x.size(0)
//! constant FEATURES = x.size(1)
//! constant OUTPUTS = weight.size(0)
//! tensormap x_tiles = x box=(128, 64) swizzle=128
//! tensormap weights = weight box=(128, 64) swizzle=128
//! tensormap out_tiles = out box=(64, 64) swizzle=128
//! tune     BOXES = 2
//! tune     STAGES = 4
//! tune     PROCESSORS = 132
//! tune     DOWN = 8 4 16
//! dim      tiles = ceil_div(ROWS, 256) * ceil_div(OUTPUTS, 256)
//! launch product grid=(2 * min(PROCESSORS / 2, tiles)) block=(384) cluster=(2) shared=STAGES*49152+2*BOXES*8192+64 args=(x_tiles, weights, out_tiles)
#define DEVICE __device__ __forceinline__

using Address = unsigned;  // in shared memory
using Descriptor = unsigned long long;
struct alignas(64) TensorMap {
  unsigned long long words[16];
};

constexpr int kTileRows = 128, kTileColumns = 256;  // rows of x, of weights
constexpr int kDepth = 64;                          // elements along k in a stage
constexpr int kBlocksInCluster = 2, kClusterRows = kBlocksInCluster * kTileRows;
constexpr int kABytes = kTileRows * kDepth * 2, kBBytes = kTileColumns * kDepth * 2;
constexpr int kStageBytes = kABytes + kBBytes;
// Of C: BOXES boxes of 64 rows are what a consumer group lays out at once.
constexpr int kBoxColumns = 64, kBoxBytes = 64 * kBoxColumns * 2;
constexpr int kBlocks = (FEATURES + kDepth - 1) / kDepth;  // along k
constexpr int kGroup = 128;                                // threads that share an instruction
constexpr int kGroupRows = 64;                             // of x, in an instruction
constexpr int kConsumers = 2 * kGroup;  // threads; the producer's group is the first

DEVICE Address SharedAddress(const void* pointer) {
  return static_cast<Address>(__cvta_generic_to_shared(pointer));
}

// Tiles of a cluster.
constexpr int kTilesDown = (ROWS + kClusterRows - 1) / kClusterRows;
constexpr int kTilesAcross = (OUTPUTS + kTileColumns - 1) / kTileColumns;
constexpr int kTiles = kTilesDown * kTilesAcross;

struct Place {
  int row, column;  // in C
};

// Bands of DOWN rows of tiles, each column by column; the last band may be lower.
DEVICE Place PlaceOf(int tile) {
  const int band = tile / (DOWN * kTilesAcross), in_band = tile % (DOWN * kTilesAcross);
  const int height = min(kTilesDown - band * DOWN, DOWN);
  return {(band * DOWN + in_band % height) * kClusterRows, in_band / height * kTileColumns};
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

extern "C" __global__ void __launch_bounds__(kGroup + kConsumers, 1)
    product(const __grid_constant__ TensorMap a_tiles, const __grid_constant__ TensorMap b_tiles,
            const __grid_constant__ TensorMap out_tiles) {
  extern __shared__ __align__(1024) unsigned char shared[];
  const Address stages = SharedAddress(shared);
  const Address boxes = stages + STAGES * kStageBytes;
  const Address full = boxes + 2 * BOXES * kBoxBytes;  // a barrier of 8 bytes a stage
  const Address empty = full + 8 * STAGES;             // another
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; ++stage) {
      InitBarrier(full + 8 * stage, 1);
      InitBarrier(empty + 8 * stage, kBlocksInCluster * kConsumers / 32);
    }
    FenceBarrierInit();
  }
  SyncCluster();  // no barrier is used before both blocks have made theirs
  const int here = BlockInCluster();
  const int cluster = blockIdx.x / kBlocksInCluster, clusters = gridDim.x / kBlocksInCluster;
  Ring ring;
  if (threadIdx.x < kGroup) {
    ShrinkRegisters<40>();
    if (threadIdx.x == 0) {
      for (int tile = cluster; tile < kTiles; tile += clusters) {
        const Place place = PlaceOf(tile);
        const int row = place.row + here * kTileRows;
        const int half = here * kTileColumns / 2;  // of B: this block's rows of the tile
        for (int block = 0; block < kBlocks; ++block, ring.Advance()) {
          // Parity 1 of a fresh barrier counts as ended: the first round finds all stages empty.
          Wait(empty + 8 * ring.stage, ring.parity ^ 1);
          const Address tiles = stages + ring.stage * kStageBytes, barrier = full + 8 * ring.stage;
          ArriveExpecting(barrier, kStageBytes);  // the neighbour's half included
          LoadBox(tiles, a_tiles, block * kDepth, row, barrier);
          LoadBoxForAll(tiles + kABytes + half * kDepth * 2, b_tiles, block * kDepth,
                        place.column + half, barrier);
        }
      }
    }
  } else {
    GrowRegisters<232>();
    const int group = threadIdx.x / kGroup;          // 1 or 2
    const int group_row = (group - 1) * kGroupRows;  // in the tile
    const bool stores = threadIdx.x % kGroup == 0;   // this thread starts the group's stores
    const Address group_boxes = boxes + (group - 1) * BOXES * kBoxBytes;
    const int warp = threadIdx.x % kGroup / 32, lane = threadIdx.x % 32;
    const int g = lane / 4, t = lane % 4;
    float sum[128];
    for (int tile = cluster; tile < kTiles; tile += clusters) {
      const Place place = PlaceOf(tile);
      int last_stage = 0;
      for (int block = 0; block < kBlocks; ++block, ring.Advance()) {
        Wait(full + 8 * ring.stage, ring.parity);
        const Address a_tile = stages + ring.stage * kStageBytes, b_tile = a_tile + kABytes;
        const Descriptor a = DescriptorOf(a_tile + group_row * kDepth * 2);
        const Descriptor b = DescriptorOf(b_tile);
        FenceSums();
#pragma unroll
        for (int step = 0; step < kDepth / 16; ++step)
          Multiply(sum, a + step * kStep, b + step * kStep, block > 0 || step > 0);
        CommitMultiplies();
        WaitMultiplies<1>();  // the block before is done
        if (block > 0 && lane < kBlocksInCluster) ArriveIn(lane, empty + 8 * last_stage);
        last_stage = ring.stage;
      }
      WaitMultiplies<0>();
      if (lane < kBlocksInCluster) ArriveIn(lane, empty + 8 * last_stage);
      const int row = place.row + here * kTileRows + group_row;
#pragma unroll
      for (int first = 0; first < kTileColumns / kBoxColumns; first += BOXES) {
        if (stores) WaitStoresRead();  // the boxes are free again
        SyncGroup(group);
#pragma unroll
        for (int j = 0; j < BOXES * kBoxColumns / 8; ++j) {  // chunks of 8 columns
          const float* const part = &sum[4 * (first * kBoxColumns / 8 + j)];
          // Rows of 128 bytes; chunk c of row r lies at c ^ r % 8, and r % 8 is g.
          const Address target =
              group_boxes + j / 8 * kBoxBytes + (16 * warp + g) * 128 + (j % 8 ^ g) * 16 + 4 * t;
          StoreShared(target, Pack(part[0], part[1]));
          StoreShared(target + 8 * 128, Pack(part[2], part[3]));
        }
        FenceForCopies();
        SyncGroup(group);
        if (stores) {
          for (int box = 0; box < BOXES; ++box)
            StoreBox(group_boxes + box * kBoxBytes, out_tiles, row,
                     place.column + (first + box) * kBoxColumns);
          CommitStores();
        }
      }
    }
    if (stores) WaitStores();
  }
  SyncCluster();  // a block stays until its neighbour has made its last arrival here
}
