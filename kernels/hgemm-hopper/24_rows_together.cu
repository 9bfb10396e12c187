// Idea: C by eight rows a warp at once. A warp wrote two rows, and only then read the next two from
//   shared memory: 16 times a tile it waited for loads, shuffles and shifts of one word. Now four
//   loads are on their way before the first word is shifted.
// Prediction: 2% faster at 4095 and 4097: 211 and 230 us. No product runs in a group of consumers
//   while it writes, an estimated 2500 clocks a tile, four tiles; half of them go.
// Measured: at 4097 on an H100 236 us, 0.3% faster than rung 23, not 2%; at 4095 222 us, no gain:
//   4% slower than rung 21. At 4095 a thread spills 8 bytes; rungs 22 and 23 spill nothing and are
//   as slow. Writing C was not in the way, as in rung 20. At 4096 it ties with cuBLAS.
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
//! scratch   a_padded bfloat16[8 + (1 - EVEN) * (ROWS * PITCH - 8)]
//! scratch   b_padded bfloat16[8 + (1 - EVEN) * (COLUMNS * PITCH - 8)]
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
//! launch clear   grid=(1) block=(256) args=(counters)
//! launch product grid=(2 * min(PROCESSORS / 2, tiles)) block=(384) cluster=(2) shared=STAGES*49152+2*BOXES*8192+64 args=(a_own, b_own, a_copied, b_copied, out_tiles, a, b, a_padded, b_padded, counters, out)
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

constexpr int kPairs = 4;  // of rows of C that a warp writes at once

// A row of C from column `column` on, as far as a group's boxes hold it.
struct RowOfC {
  long long start;         // in C
  int width, first, last;  // elements; the first of a whole word; the one after the last of them
};

DEVICE RowOfC RowAt(int row, int column) {
  const long long start = (long long)row * COLUMNS + column;
  const int width = row < ROWS ? min(COLUMNS - column, BOXES * kBoxColumns) : 0;
  const int first = static_cast<int>(-start & 7);
  return {start, width, first, first + max(width - first, 0) / 8 * 8};
}

// A warp writes elements of 2 kPairs rows of C, from row r of a group's boxes on: half a warp a
// row.
DEVICE void WriteRows(BFloat16* out, int row, int column, Address boxes, int r, int lane) {
  static_assert(BOXES * kBoxColumns == 16 * 8, "a word a lane");
  const int half = lane / 16, place = lane % 16;
  uint4 words[kPairs];
  BFloat16 singles[kPairs];
#pragma unroll
  for (int i = 0; i < kPairs; ++i) {
    const int in_boxes = r + 2 * i + half;
    const RowOfC target = RowAt(row + 2 * i + half, column);
    words[i] = LoadSharedWord(boxes + PlaceInBoxes(in_boxes, 8 * place));
    // Eight lanes write elements before the first word, and eight those after the last.
    const int single = place < 8 ? place : target.last + place - 8;
    singles[i] = LoadSharedHalf(boxes + PlaceInBoxes(in_boxes, single % (BOXES * kBoxColumns)));
  }
#pragma unroll
  for (int i = 0; i < kPairs; ++i) {
    const uint4& mine = words[i];
    const int beside = (lane + 1) % 32;
    const uint4 next{__shfl_sync(~0u, mine.x, beside), __shfl_sync(~0u, mine.y, beside),
                     __shfl_sync(~0u, mine.z, beside), __shfl_sync(~0u, mine.w, beside)};
    const RowOfC target = RowAt(row + 2 * i + half, column);
    const uint4 word = Shift(mine, next, target.first);
    const int at = target.first + 8 * place;
    if (at + 8 <= target.width) *reinterpret_cast<uint4*>(out + target.start + at) = word;
    const int single = place < 8 ? place : target.last + place - 8;
    if (single < (place < 8 ? min(target.first, target.width) : target.width))
      out[target.start + single] = singles[i];
  }
}

// ---- Copies of A and B into rows of PITCH elements. A task copies TASK elements: a slice, SLICE
// of them along k, of a few rows; the tasks of a slice of a part copy its rows of A, then of B. The
// last part has up to THIN rows more, the last slice up to 31 words. The first counter counts tasks
// that were taken, then comes one for each slice of each part: minus its tasks that are left.

constexpr int kPart = DOWN * kClusterRows;  // rows of A, and as many of B
constexpr int kTaskRows = TASK / SLICE;
constexpr int kWords = SLICE / 8 / 32;  // words of 16 bytes, of a row of a task, a lane
constexpr int kStoredWords = kWords + (PITCH > SLICES * SLICE ? 1 : 0);  // of the last slice

// Rows in a part of a matrix of so many rows.
constexpr __host__ __device__ int RowsIn(int part, int rows) {
  const int left = rows - part * kPart;
  return left < 0 ? 0 : part == PARTS - 1 || left < kPart ? left : kPart;
}

constexpr __host__ __device__ int TasksOf(int rows) { return (rows + kTaskRows - 1) / kTaskRows; }

// The tasks of a slice of a part.
constexpr __host__ __device__ int TasksIn(int part) {
  return TasksOf(RowsIn(part, ROWS)) + TasksOf(RowsIn(part, COLUMNS));
}

constexpr int kAllTasks = EVEN ? 0 : SLICES * (TasksOf(ROWS) + TasksOf(COLUMNS));
static_assert(kPart % kTaskRows == 0 && PITCH - SLICES * SLICE < 8 * 32);

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

// Fetches the words that hold a slice of `width` elements from element `first` of a matrix of
// `count` elements on, and the word after it: lane l has words l, l + 32, ...
DEVICE void LoadSlice(uint4 (&words)[kWords + 1], const BFloat16* matrix, long long first,
                      long long count, int width, int lane) {
#pragma unroll
  for (int i = 0; i <= kWords; ++i) {
    const long long word = first / 8 + lane + 32 * i;
    words[i] = uint4{};
    if (8 * (lane + 32 * i) <= width && word * 8 < count)
      words[i] = LoadWord(reinterpret_cast<const uint4*>(matrix) + word);
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

// Writes a slice of `width` elements, of a row that has `count` elements from there on. In `words`
// it begins `shift` elements after the first. What lies beyond the end of the row becomes zero.
DEVICE void StoreSlice(BFloat16* to, const uint4 (&words)[kWords + 1], int shift, int count,
                       int width, int lane) {
#pragma unroll
  for (int i = 0; i < kStoredWords; ++i) {
    const uint4 &mine = words[i], &over = words[i < kWords ? i + 1 : i];
    const uint4 next{FromNextLane(mine.x, over.x, lane), FromNextLane(mine.y, over.y, lane),
                     FromNextLane(mine.z, over.z, lane), FromNextLane(mine.w, over.w, lane)};
    uint4 word = Shift(mine, next, shift);
    const int k = 8 * (lane + 32 * i), left = count - k;
    word = {Before(word.x, left), Before(word.y, left - 2), Before(word.z, left - 4),
            Before(word.w, left - 6)};
    if (k < width) *reinterpret_cast<uint4*>(to + k) = word;
  }
}

// ---- Thin edges: a column of C in all thin rows, then a row of C in all thin columns, a task.

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

// A warp takes tasks from `task` on, once all copies are there.
DEVICE void MultiplyEdges(int task, const BFloat16* a_padded, const BFloat16* b_padded,
                          BFloat16* out, int* counters, int lane) {
  if (!EVEN)
    for (int i = lane; i < PARTS * SLICES; i += 32)
      AwaitCounters(counters + 1 + i, counters + 1 + i);
  __syncwarp();
  while (task < kAllTasks + kEdgeTasks) {
    const int edge = task - kAllTasks, row = edge - kThinRowTasks;
    task = TakeTask(counters, lane);
    if (edge < kThinRowTasks)
      MultiplyThin<kThinRows>(b_padded + (long long)edge * PITCH,
                              a_padded + (long long)kTiledRows * PITCH,
                              out + (long long)kTiledRows * COLUMNS + edge, COLUMNS, lane);
    else
      MultiplyThin<kThinColumns>(a_padded + (long long)row * PITCH,
                                 b_padded + (long long)kTiledColumns * PITCH,
                                 out + (long long)row * COLUMNS + kTiledColumns, 1, lane);
  }
}

// A warp takes tasks until no copy is left; returns the task that it took last.
DEVICE int CopyRows(const BFloat16* a, const BFloat16* b, BFloat16* a_padded, BFloat16* b_padded,
                    int* counters, int lane) {
  int* done = nullptr;  // the counter of the task before
  int task = TakeTask(counters, lane);
  while (task < kAllTasks) {
    int part = 0;
    for (; task >= SLICES * TasksIn(part); ++part) task -= SLICES * TasksIn(part);
    const int slice = task / TasksIn(part), in_slice = task % TasksIn(part);
    const int tasks_of_a = TasksOf(RowsIn(part, ROWS));
    const bool of_b = in_slice >= tasks_of_a;
    const BFloat16* const from = of_b ? b : a;
    BFloat16* const to = of_b ? b_padded : a_padded;
    const int rows = of_b ? COLUMNS : ROWS;
    const int row = part * kPart + (of_b ? in_slice - tasks_of_a : in_slice) * kTaskRows;
    const int k = slice * SLICE, width = slice == SLICES - 1 ? PITCH - k : SLICE;
    uint4 words[kTaskRows][kWords + 1];
#pragma unroll
    for (int i = 0; i < kTaskRows; ++i)
      LoadSlice(words[i], from, (long long)(row + i) * INNER + k, (long long)rows * INNER, width,
                lane);
    // While they come: the next task, and word of the one before.
    task = TakeTask(counters, lane);
    if (done != nullptr && lane == 0) Count(done);
#pragma unroll
    for (int i = 0; i < kTaskRows; ++i)
      if (row + i < rows)
        StoreSlice(to + (long long)(row + i) * PITCH + k, words[i],
                   (long long)(row + i) * INNER % 8, INNER - k, width, lane);
    done = counters + 1 + part * SLICES + slice;
    __syncwarp();  // lane 0 speaks for all
  }
  if (done != nullptr && lane == 0) Count(done);
  return task;
}

extern "C" __global__ void __launch_bounds__(256) clear(int* counters) {
  for (int i = threadIdx.x; i <= PARTS * SLICES; i += 256)
    counters[i] = i == 0 ? 0 : -TasksIn((i - 1) / SLICES);
}

extern "C" __global__ void __launch_bounds__(kGroup + kConsumers, 1)
    product(const __grid_constant__ TensorMap a_own, const __grid_constant__ TensorMap b_own,
            const __grid_constant__ TensorMap a_copied, const __grid_constant__ TensorMap b_copied,
            const __grid_constant__ TensorMap out_tiles, const BFloat16* a, const BFloat16* b,
            BFloat16* a_padded, BFloat16* b_padded, int* counters, BFloat16* out) {
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
      const int task = CopyRows(a, b, a_padded, b_padded, counters, lane);
      if (kEdgeTasks > 0)
        MultiplyEdges(task, EVEN ? a : a_padded, EVEN ? b : b_padded, out, counters, lane);
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
          for (int r = 16 * warp; r < 16 * warp + 16; r += 2 * kPairs)
            WriteRows(out, row + r, column, group_boxes, r, lane);
        }
      }
    }
    if (WORDS && stores) WaitStores();
  }
  SyncCluster();  // a block stays until its neighbour has made its last arrival here
}
