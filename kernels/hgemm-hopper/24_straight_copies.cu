// Idea: copies in straight lines. Since rung 22 a task finds its place by a division by a number known
//   only when it runs, and each of its 16 words waits for its own shuffles behind a branch (21 has
//   those of a row together): likely the loss of 8 us at 4095. Now the sizes give every divisor, and
//   words are guarded only where a slice may end. Two of the three bits of a shift are constants.
//   Thin edges are multiplied while the copies pass through registers, as partial sums of a slice:
//   at 4097 67 MB are not read again.
// Prediction: at 4095 211 us, 84% of the rate of rung 15 at 4096: the 214 of rung 21, less a few
//   instructions a task. At 4097 219 us, 81%: 8 us less than rung 23 by the copies, 9 by the edges,
//   6% of the 1.1 GB that the product reads from the cache. At 4096 nothing changes.
// Measured: 215.1 us at 4095 and 229.1 us at 4097 on an H100, 83% and 78% of the rate of rung 15 at
//   4096; rung 21 took 213.3 and 271.0 us in the same run, rung 23 221.8 and 235.5 us. In another
//   run 217.2 and 231.3 us, at 4096 181.7 us, 99.8% of the library, a tie, and at 8192 1.45 ms,
//   108.8%. With four thin rows 68 bytes a thread are spilled.
// Sizes: all with at least 8 elements in A, in B and in C.
//! constant ROWS = a.size(0)
//! constant INNER = a.size(1)
//! constant COLUMNS = b.size(0)
//! constant EVEN = 1 - min(INNER % 8, 1)
//! constant PITCH = EVEN * INNER + (1 - EVEN) * ceil_div(INNER, 64) * 64
//! tune     DOWN = 8 4 16
//! tune     THIN = 4
//! constant PARTS = ceil_div(max(max(ROWS, COLUMNS), THIN + 1) - THIN, 256 * DOWN)
//! tune     SLICE = 1024 512
//! tune     TASK = 4096 2048
//! constant SLICES = ceil_div(max(PITCH, 249) - 248, SLICE)
//! constant WORDS = 1 - min(COLUMNS % 8, 1)
//! scratch   a_padded bfloat16[8 + (1 - EVEN) * (ceil_div(ROWS, 8) * 8 * PITCH - 8)]
//! scratch   b_padded bfloat16[8 + (1 - EVEN) * (ceil_div(COLUMNS, 8) * 8 * PITCH - 8)]
//! scratch   partials float32[8 + (1 - EVEN) * SLICES * THIN * 8 * (ceil_div(ROWS, 8) + ceil_div(COLUMNS, 8))]
//! scratch   counters int32[1 + PARTS * SLICES]
//! tensormap a_own    = a shape=(1 + EVEN * (ROWS - 1), 8 + EVEN * (INNER - 8)) box=(128, 64) swizzle=128
//! tensormap b_own    = b shape=(1 + EVEN * (COLUMNS - 1), 8 + EVEN * (INNER - 8)) box=(128, 64) swizzle=128
//! tensormap a_copied = a_padded shape=(1 + (1 - EVEN) * (ROWS - 1), 8 + (1 - EVEN) * (PITCH - 8)) box=(128, 64) swizzle=128
//! tensormap b_copied = b_padded shape=(1 + (1 - EVEN) * (COLUMNS - 1), 8 + (1 - EVEN) * (PITCH - 8)) box=(128, 64) swizzle=128
//! tensormap out_tiles = out shape=(1 + WORDS * (ROWS - 1), 8 + WORDS * (COLUMNS - 8)) box=(64, 64) swizzle=128
//! tune     BOXES = 2
//! tune     STAGES = 4
//! tune     PROCESSORS = 132
//! dim      tiles = ceil_div(ROWS, 256) * ceil_div(COLUMNS, 256)
//! launch prepare grid=(32) block=(256) args=(a, b, a_padded, b_padded, counters)
//! launch product grid=(2 * min(PROCESSORS / 2, tiles)) block=(384) cluster=(2) shared=STAGES*49152+2*BOXES*8192+64 args=(a_own, b_own, a_copied, b_copied, out_tiles, a, b, a_padded, b_padded, partials, counters, out)
#define DEVICE __device__ __forceinline__

using BFloat16 = unsigned short;  // its bits
using Address = unsigned;         // in shared memory
using Descriptor = unsigned long long;
struct alignas(64) TensorMap {
  unsigned long long words[16];
};

constexpr int kTileRows = 128, kTileColumns = 256;  // rows of A, rows of B
constexpr int kDepth = 64;                          // elements along k in a stage
constexpr int kBlocksInCluster = 2, kClusterRows = kBlocksInCluster * kTileRows;
constexpr int kABytes = kTileRows * kDepth * 2, kBBytes = kTileColumns * kDepth * 2;
constexpr int kStageBytes = kABytes + kBBytes;
// Of C: BOXES boxes of 64 rows are what a consumer group lays out at once.
constexpr int kBoxColumns = 64, kBoxBytes = 64 * kBoxColumns * 2;
constexpr int kBlocks = (INNER + kDepth - 1) / kDepth;  // along k
constexpr int kGroup = 128;                             // threads that share an instruction
constexpr int kGroupRows = 64;                          // of A, in an instruction
constexpr int kConsumers = 2 * kGroup;  // threads; the producer's group is the first

DEVICE Address SharedAddress(const void* pointer) {
  return static_cast<Address>(__cvta_generic_to_shared(pointer));
}

// Rows or columns beyond whole tiles of `tile`, where they are few.
constexpr __host__ __device__ int ThinOf(int size, int tile) {
  return size > tile && size % tile <= THIN ? size % tile : 0;
}
constexpr int kThinRows = ThinOf(ROWS, kClusterRows), kThinColumns = ThinOf(COLUMNS, kTileColumns);
constexpr int kTiledRows = ROWS - kThinRows, kTiledColumns = COLUMNS - kThinColumns;

// Tiles of a cluster.
constexpr int kTilesDown = (kTiledRows + kClusterRows - 1) / kClusterRows;
constexpr int kTilesAcross = (kTiledColumns + kTileColumns - 1) / kTileColumns;
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

// ---- Registers of a group of 128 threads: 3 x 168 at the start, 136 + 2 x 184 then.

template <int count>
DEVICE void ShrinkRegisters() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}

template <int count>
DEVICE void GrowRegisters() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}

// ---- The result.

// Two numbers rounded to 16 bits, the first in the lower half.
DEVICE unsigned Pack(float low, float high) {
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

// Four 8 x 8 blocks; lanes 8 i to 8 i + 7 give the addresses of the rows of block i, and the lane
// numbered 4 g + t holds elements 2 t and 2 t + 1 of row g.
DEVICE void StoreBlocks(Address target, unsigned first, unsigned second, unsigned third,
                        unsigned fourth) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(target),
               "r"(first), "r"(second), "r"(third), "r"(fourth)
               : "memory");
}

DEVICE uint4 LoadSharedWord(Address source) {
  uint4 word;
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w)
               : "r"(source)
               : "memory");
  return word;
}

DEVICE BFloat16 LoadSharedHalf(Address source) {
  BFloat16 value;
  asm volatile("ld.shared.b16 %0, [%1];" : "=h"(value) : "r"(source) : "memory");
  return value;
}

// Eight elements, of sixteen, from the one numbered `shift` on (0 to 7).
DEVICE uint4 Shift(const uint4& low, const uint4& high, int shift) {
  unsigned pairs[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
  for (int i = 0; i < 6; ++i)
    if (shift & 4) pairs[i] = pairs[i + 2];
#pragma unroll
  for (int i = 0; i < 5; ++i)
    if (shift & 2) pairs[i] = pairs[i + 1];
#pragma unroll
  for (int i = 0; i < 4; ++i) pairs[i] = __funnelshift_r(pairs[i], pairs[i + 1], shift % 2 * 16);
  return {pairs[0], pairs[1], pairs[2], pairs[3]};
}

// Where an element lies of what a group has laid out: boxes of 64 columns in rows of 128 bytes,
// chunk c of row r at c ^ r % 8.
DEVICE Address PlaceInBoxes(int row, int column) {
  return column / kBoxColumns * kBoxBytes + row * 128 + (column % kBoxColumns / 8 ^ row % 8) * 16 +
         column % 8 * 2;
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

// A warp writes elements of two rows of C, from row r of a group's boxes on: half a warp a row.
DEVICE void WriteRows(BFloat16* out, int row, int column, Address boxes, int r, int lane) {
  constexpr int kWidth = BOXES * kBoxColumns;
  static_assert(kWidth == 16 * 8, "a word a lane");
  const int half = lane / 16, place = lane % 16;
  const uint4 mine = LoadSharedWord(boxes + PlaceInBoxes(r + half, 8 * place));
  const int beside = (lane + 1) % 32;
  const uint4 next{__shfl_sync(~0u, mine.x, beside), __shfl_sync(~0u, mine.y, beside),
                   __shfl_sync(~0u, mine.z, beside), __shfl_sync(~0u, mine.w, beside)};
  const long long start = (long long)(row + half) * COLUMNS + column;
  const int first = static_cast<int>(-start & 7);  // the first element of a whole word
  const int width = row + half < ROWS ? min(COLUMNS - column, kWidth) : 0;
  const uint4 word = Shift(mine, next, first);
  const int at = first + 8 * place;
  if (at + 8 <= width) *reinterpret_cast<uint4*>(out + start + at) = word;
  // Eight lanes write elements before the first word, and eight those after the last.
  const int last = first + max(width - first, 0) / 8 * 8;
  const int single = place < 8 ? place : last + place - 8;
  if (single < (place < 8 ? min(first, width) : width))
    out[start + single] = LoadSharedHalf(boxes + PlaceInBoxes(r + half, single));
}

// ---- Copies of A and B into rows of PITCH elements. A task copies TASK elements: a slice, SLICE
// of them along k, of a few rows; the tasks of a slice of a part copy its rows of A, then of B. The
// last slice has up to 31 words more. Thin rows are no task's. The first counter counts tasks that
// were taken, then comes one for each slice of each part: minus its tasks that are left.

constexpr int kPart = DOWN * kClusterRows;  // rows of A, and as many of B
constexpr int kTaskRows = TASK / SLICE;
constexpr int kWords = SLICE / 8 / 32;  // words of 16 bytes, of a row of a task, a lane
constexpr int kLastSlice = (SLICES - 1) * SLICE, kLastWidth = PITCH - kLastSlice;
static_assert(kPart % kTaskRows == 0 && 8 % kTaskRows == 0 && kLastWidth < SLICE + 8 * 32);
static_assert(SLICES == 1 || kLastSlice < INNER, "only the last slice has zeros");

// Rows that tasks copy, of the matrix that has more of them; the other has tasks without work.
constexpr int kCopiedRows = kTiledRows > kTiledColumns ? kTiledRows : kTiledColumns;
constexpr int kTasks = kPart / kTaskRows;  // of a slice of a part, of A, and as many of B
constexpr int kLastTasks = (kCopiedRows - (PARTS - 1) * kPart + kTaskRows - 1) / kTaskRows;
constexpr int kFullTasks = EVEN ? 0 : 2 * SLICES * (PARTS - 1) * kTasks;  // before the last part
constexpr int kAllTasks = EVEN ? 0 : kFullTasks + 2 * SLICES * kLastTasks;
static_assert(kLastTasks > 0 && kLastTasks <= kTasks);

struct Task {
  int part, slice, row;  // the first of its rows
  bool of_b;
};

// The task of this index among those from a part on, in parts of so many tasks a slice and matrix.
template <int tasks>
DEVICE Task TaskOf(int index, int first_part) {
  const int slice_of_part = index / (2 * tasks), in_slice = index % (2 * tasks);
  const int part = first_part + slice_of_part / SLICES;
  return {part, slice_of_part % SLICES, part * kPart + in_slice % tasks * kTaskRows,
          in_slice >= tasks};
}

// A word that the near cache need not keep.
DEVICE uint4 LoadWord(const uint4* from) {
  uint4 word;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w)
               : "l"(from));
  return word;
}

// Adds 1 to a counter; who sees it sees all that this thread has written or has seen.
DEVICE void Count(int* counter) {
  asm volatile("red.release.gpu.global.add.s32 [%0], 1;" ::"l"(counter) : "memory");
}

DEVICE int LoadCounter(const int* counter) {
  int value;
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(counter) : "memory");
  return value;
}

// Shows memory that this thread sees to copies that it starts.
DEVICE void FenceForLoads() { asm volatile("fence.proxy.async;" ::: "memory"); }

// Waits until all tasks of two counters are done.
DEVICE void AwaitCounters(const int* first, const int* second) {
  for (int tries = 0; LoadCounter(first) < 0 || LoadCounter(second) < 0; ++tries)
    if (tries == 1 << 22) __trap();
}

DEVICE int TakeTask(int* counters, int lane) {
  const int task = lane == 0 ? atomicAdd(counters, 1) : 0;
  return __shfl_sync(~0u, task, 0);
}

// Fetches the words that hold a slice of `width` elements from element k of a row on, and the word
// after it: lane l has words l, l + 32, ... Beyond these it has the last, and beyond the matrix of
// `rows` rows the last of the matrix.
DEVICE void LoadSlice(uint4 (&words)[kWords + 1], const BFloat16* matrix, int row, int k, int rows,
                      int width, int lane) {
  static_assert((long long)kCopiedRows * INNER / 8 < 1 << 30);
  const int first = static_cast<int>(((long long)row * INNER + k) / 8);
  const int last = static_cast<int>(((long long)rows * INNER - 1) / 8);
#pragma unroll
  for (int i = 0; i <= kWords; ++i) {
    int place = lane + 32 * i;
    if (i == kWords || kLastWidth < SLICE) place = min(place, width / 8);
    words[i] = LoadWord(reinterpret_cast<const uint4*>(matrix) + min(first + place, last));
  }
}

// The lane's word `mine`, and in lane 31 the word of lane 0, `over`: those of the next lane.
DEVICE unsigned FromNextLane(unsigned mine, unsigned over, int lane) {
  return __shfl_sync(~0u, lane == 0 ? over : mine, (lane + 1) % 32);
}

// Two elements, or those of them that come before `count`; the others are zero.
DEVICE unsigned Before(unsigned pair, int count) {
  return count >= 2 ? pair : count == 1 ? pair & 0xFFFF : 0;
}

// ---- Thin edges where nothing is copied: a column of C in all thin rows, then a row of C in all
// thin columns, a task.

constexpr int kThinRowTasks = kThinRows > 0 ? COLUMNS : 0;
constexpr int kThinColumnTasks = kThinColumns > 0 ? kTiledRows : 0;
constexpr int kEdgeTasks = kThinRowTasks + kThinColumnTasks;

DEVICE float First(unsigned pair) { return __uint_as_float(pair << 16); }
DEVICE float Second(unsigned pair) { return __uint_as_float(pair & 0xFFFF0000); }
DEVICE float MultiplyPairs(unsigned a, unsigned b, float sum) {
  return First(a) * First(b) + (Second(a) * Second(b) + sum);
}

// The product of a row with `count` rows of the other matrix goes to elements of C that are
// `stride` apart.
template <int count>
DEVICE void MultiplyThin(const BFloat16* row, const BFloat16* others, BFloat16* target, int stride,
                         int lane) {
  float sums[count > 0 ? count : 1] = {};
#pragma unroll 8
  for (int k = 8 * lane; k < PITCH; k += 8 * 32) {
    const uint4 mine = *reinterpret_cast<const uint4*>(row + k);
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const uint4 other = *reinterpret_cast<const uint4*>(others + i * PITCH + k);
      sums[i] = MultiplyPairs(mine.x, other.x, sums[i]);
      sums[i] = MultiplyPairs(mine.y, other.y, sums[i]);
      sums[i] = MultiplyPairs(mine.z, other.z, sums[i]);
      sums[i] = MultiplyPairs(mine.w, other.w, sums[i]);
    }
  }
#pragma unroll
  for (int i = 0; i < count; ++i) {
    for (int apart = 16; apart > 0; apart /= 2) sums[i] += __shfl_xor_sync(~0u, sums[i], apart);
    if (lane == 0) target[(long long)i * stride] = static_cast<BFloat16>(Pack(sums[i], 0.0f));
  }
}

// A warp takes tasks from `task` on.
DEVICE void MultiplyEdges(int task, const BFloat16* a, const BFloat16* b, BFloat16* out,
                          int* counters, int lane) {
  while (task < kEdgeTasks) {
    const int edge = task, row = edge - kThinRowTasks;
    task = TakeTask(counters, lane);
    if (edge < kThinRowTasks)
      MultiplyThin<kThinRows>(b + (long long)edge * PITCH, a + (long long)kTiledRows * PITCH,
                              out + (long long)kTiledRows * COLUMNS + edge, COLUMNS, lane);
    else
      MultiplyThin<kThinColumns>(a + (long long)row * PITCH, b + (long long)kTiledColumns * PITCH,
                                 out + (long long)row * COLUMNS + kTiledColumns, 1, lane);
  }
}

// ---- Thin edges of copied matrices. The first kernel copies thin rows. A task multiplies its rows,
// as it writes them, by the thin rows of the other matrix: a partial sum for each slice.

constexpr int kThin = kThinRows > kThinColumns ? kThinRows : kThinColumns;
constexpr int kPaddedRows = (ROWS + 7) / 8 * 8, kPaddedColumns = (COLUMNS + 7) / 8 * 8;

// The partial sums of one slice and thin row: for the rows of B, or for those of A.
DEVICE float* PartialsOf(float* partials, bool of_b, int slice, int thin) {
  const int place = slice * THIN + thin;
  return of_b ? partials + place * kPaddedColumns
              : partials + SLICES * THIN * kPaddedColumns + place * kPaddedRows;
}

// The rows of a task on their way: the words that hold them, and sums of their products.
struct Rows {
  uint4 words[kTaskRows][kWords + 1];
  float sums[kTaskRows][kThin > 0 ? kThin : 1];
};

// Writes word i of each lane, of all rows of a task, at element k of rows from `to` on. The rows
// begin `high` + (r INNER) % kTaskRows elements after the first of their words, the latter a
// constant. `thin` holds rows of the other matrix at element k.
DEVICE void StoreWords(Rows& rows, int i, int row, int k, int width, BFloat16* to,
                       const BFloat16* thin, int lane) {
  const int place = 8 * (lane + 32 * i);  // in the slice
  uint4 others[kThin > 0 ? kThin : 1];
#pragma unroll
  for (int t = 0; t < kThin; ++t)
    others[t] = *reinterpret_cast<const uint4*>(thin + t * PITCH + min(k + place, PITCH - 8));
#pragma unroll
  for (int r = 0; r < kTaskRows; ++r) {
    const uint4 &mine = rows.words[r][i], &over = rows.words[r][i < kWords ? i + 1 : i];
    const uint4 next{FromNextLane(mine.x, over.x, lane), FromNextLane(mine.y, over.y, lane),
                     FromNextLane(mine.z, over.z, lane), FromNextLane(mine.w, over.w, lane)};
    // Row `row` is a multiple of kTaskRows, and so is the element with which it begins.
    const unsigned high = static_cast<unsigned>(row + r) * INNER & 7 & ~(kTaskRows - 1);
    uint4 word = Shift(mine, next, static_cast<int>(high | r * INNER & kTaskRows - 1));
    if (kLastSlice + 8 * 32 * (i + 1) > INNER) {
      const int left = INNER - k - place;
      word = {Before(word.x, left), Before(word.y, left - 2), Before(word.z, left - 4),
              Before(word.w, left - 6)};
    }
    const bool all_in = i < kWords && kLastWidth >= SLICE;
    if (all_in || place < width)
      *reinterpret_cast<uint4*>(to + (long long)r * PITCH + k + place) = word;
#pragma unroll
    for (int t = 0; t < kThin; ++t) {
      float sum = rows.sums[r][t];
      sum = MultiplyPairs(word.x, others[t].x, sum);
      sum = MultiplyPairs(word.y, others[t].y, sum);
      sum = MultiplyPairs(word.z, others[t].z, sum);
      sum = MultiplyPairs(word.w, others[t].w, sum);
      if (all_in || place < width) rows.sums[r][t] = sum;
    }
  }
}

// Once all copies are there: a lane adds partial sums of an element of C, and the first warp
// multiplies thin rows by thin rows.
DEVICE void AddEdges(const BFloat16* a_padded, const BFloat16* b_padded, float* partials,
                     const int* counters, BFloat16* out, int warp, int lane) {
  for (int i = lane; i < PARTS * SLICES; i += 32)
    AwaitCounters(counters + 1 + i, counters + 1 + i);
  __syncwarp();
  constexpr int kBelow = kThinRows * kTiledColumns, kBeside = kThinColumns * kTiledRows;
  for (int i = 32 * warp + lane; i < kBelow + kBeside; i += 3 * 32 * gridDim.x) {
    const bool below = i < kBelow;
    const int edge = below ? i : i - kBelow, along = below ? kTiledColumns : kTiledRows;
    const int thin = edge / along, place = edge % along;
    float sum = 0.0f;
    for (int slice = 0; slice < SLICES; ++slice)
      sum += PartialsOf(partials, below, slice, thin)[place];
    const int row = below ? kTiledRows + thin : place;
    const int column = below ? place : kTiledColumns + thin;
    out[(long long)row * COLUMNS + column] = static_cast<BFloat16>(Pack(sum, 0.0f));
  }
  if (warp == 0)
    for (int i = 0; i < kThinColumns; ++i)
      MultiplyThin<kThinRows>(b_padded + (long long)(kTiledColumns + i) * PITCH,
                              a_padded + (long long)kTiledRows * PITCH,
                              out + (long long)kTiledRows * COLUMNS + kTiledColumns + i, COLUMNS,
                              lane);
}

// A warp takes tasks until no copy is left; returns the task that it took last.
DEVICE int CopyRows(const BFloat16* a, const BFloat16* b, BFloat16* a_padded, BFloat16* b_padded,
                    float* partials, int* counters, int lane) {
  int* done = nullptr;  // the counter of the task before
  int index = TakeTask(counters, lane);
  while (index < kAllTasks) {
    const Task task = index < kFullTasks ? TaskOf<kTasks>(index, 0)
                                         : TaskOf<kLastTasks>(index - kFullTasks, PARTS - 1);
    const bool of_b = task.of_b, last = task.slice == SLICES - 1;
    const int row = task.row, k = task.slice * SLICE, width = last ? kLastWidth : SLICE;
    Rows rows = {};
#pragma unroll
    for (int r = 0; r < kTaskRows; ++r)
      LoadSlice(rows.words[r], of_b ? b : a, row + r, k, of_b ? COLUMNS : ROWS, width, lane);
    // While they come: the next task, and word of the one before.
    index = TakeTask(counters, lane);
    if (done != nullptr && lane == 0) Count(done);
    if (kTiledRows == kTiledColumns || row < (of_b ? kTiledColumns : kTiledRows)) {
      BFloat16* const to = (of_b ? b_padded : a_padded) + (long long)row * PITCH;
      const BFloat16* const thin = of_b ? a_padded + (long long)kTiledRows * PITCH
                                        : b_padded + (long long)kTiledColumns * PITCH;
#pragma unroll
      for (int i = 0; i < kWords; ++i) StoreWords(rows, i, row, k, width, to, thin, lane);
      if (kLastWidth > SLICE && last) StoreWords(rows, kWords, row, k, width, to, thin, lane);
#pragma unroll
      for (int r = 0; r < kTaskRows; ++r)
#pragma unroll
        for (int t = 0; t < kThin; ++t) {
          float sum = rows.sums[r][t];
          for (int apart = 16; apart > 0; apart /= 2) sum += __shfl_xor_sync(~0u, sum, apart);
          if (lane == 0) PartialsOf(partials, of_b, task.slice, t)[row + r] = sum;
        }
    }
    done = counters + 1 + task.part * SLICES + task.slice;
    __syncwarp();  // lane 0 speaks for all
  }
  if (done != nullptr && lane == 0) Count(done);
  return index;
}

// Sets the counters, and copies thin rows.
extern "C" __global__ void __launch_bounds__(256)
    prepare(const BFloat16* a, const BFloat16* b, BFloat16* a_padded, BFloat16* b_padded,
            int* counters) {
  const int thread = blockIdx.x * 256 + threadIdx.x, threads = gridDim.x * 256;
  for (int i = thread; i <= PARTS * SLICES; i += threads)
    counters[i] = i == 0 ? 0 : -2 * ((i - 1) / SLICES == PARTS - 1 ? kLastTasks : kTasks);
  constexpr int kOfA = kThinRows * PITCH, kOfB = kThinColumns * PITCH;
  for (int i = thread; !EVEN && i < kOfA + kOfB; i += threads) {
    const int place = i < kOfA ? i : i - kOfA, k = place % PITCH;
    const int row = place / PITCH + (i < kOfA ? kTiledRows : kTiledColumns);
    const BFloat16* const from = i < kOfA ? a : b;
    BFloat16* const to = i < kOfA ? a_padded : b_padded;
    to[(long long)row * PITCH + k] = k < INNER ? from[(long long)row * INNER + k] : 0;
  }
}

extern "C" __global__ void __launch_bounds__(kGroup + kConsumers, 1)
    product(const __grid_constant__ TensorMap a_own, const __grid_constant__ TensorMap b_own,
            const __grid_constant__ TensorMap a_copied, const __grid_constant__ TensorMap b_copied,
            const __grid_constant__ TensorMap out_tiles, const BFloat16* a, const BFloat16* b,
            BFloat16* a_padded, BFloat16* b_padded, float* partials, int* counters, BFloat16* out) {
  const TensorMap& a_tiles = EVEN ? a_own : a_copied;
  const TensorMap& b_tiles = EVEN ? b_own : b_copied;
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
    ShrinkRegisters<136>();
    if (threadIdx.x >= 32) {
      const int lane = threadIdx.x % 32;
      const int task = CopyRows(a, b, a_padded, b_padded, partials, counters, lane);
      if (kThin > 0 && EVEN) MultiplyEdges(task, a, b, out, counters, lane);
      if (kThin > 0 && !EVEN)
        AddEdges(a_padded, b_padded, partials, counters, out, 3 * blockIdx.x + threadIdx.x / 32 - 1,
                 lane);
    } else if (threadIdx.x == 0) {
      for (int tile = cluster; tile < kTiles; tile += clusters) {
        const Place place = PlaceOf(tile);
        const int row = place.row + here * kTileRows;
        const int half = here * kTileColumns / 2;  // of B: this block's rows of the tile
        for (int block = 0; block < kBlocks; ++block, ring.Advance()) {
          if (!EVEN && block * kDepth % SLICE == 0 && block * kDepth < SLICES * SLICE) {
            // The next slice of both parts.
            const int* const counter = counters + 1 + block * kDepth / SLICE;
            AwaitCounters(counter + row / kPart * SLICES, counter + place.column / kPart * SLICES);
            FenceForLoads();
          }
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
    GrowRegisters<184>();
    const int group = threadIdx.x / kGroup;          // 1 or 2
    const int group_row = (group - 1) * kGroupRows;  // in the tile
    const bool stores = threadIdx.x % kGroup == 0;   // this thread starts the group's stores
    const Address group_boxes = boxes + (group - 1) * BOXES * kBoxBytes;
    const int warp = threadIdx.x % kGroup / 32, lane = threadIdx.x % 32;
    const int lane_row = 16 * warp + lane % 16, lane_chunk = lane / 16;  // whose address it gives
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
        if (WORDS) {
          if (stores) WaitStoresRead();  // the boxes are free again
          SyncGroup(group);
        }
        __syncwarp();  // the warp has written out what lay here
#pragma unroll
        for (int j = 0; j < BOXES * kBoxColumns / 8; j += 2) {  // chunks of 8 columns
          const float* const part = &sum[4 * (first * kBoxColumns / 8 + j)];
          const Address target = group_boxes + PlaceInBoxes(lane_row, 8 * (j + lane_chunk));
          StoreBlocks(target, Pack(part[0], part[1]), Pack(part[2], part[3]),
                      Pack(part[4], part[5]), Pack(part[6], part[7]));
        }
        const int column = place.column + first * kBoxColumns;
        if (WORDS) {
          FenceForCopies();
          SyncGroup(group);
          if (stores) {
            for (int box = 0; box < BOXES; ++box)
              StoreBox(group_boxes + box * kBoxBytes, out_tiles, row, column + box * kBoxColumns);
            CommitStores();
          }
        } else {
          __syncwarp();
          for (int r = 16 * warp; r < 16 * warp + 16; r += 2)
            WriteRows(out, row + r, column, group_boxes, r, lane);
        }
      }
    }
    if (WORDS && stores) WaitStores();
  }
  SyncCluster();  // a block stays until its neighbour has made its last arrival here
}
