// Idea: the sums are scaled only where it matters. Powers are of the distance to a reference score,
//   which need not be the largest: it is left as it is until a score lies 8 powers of 2 above it.
//   Weights up to 256 are rounded as well as those up to 1. So after the first blocks the 64 sums
//   of a thread are hardly ever multiplied.
// Prediction: 170% of the library: about 64 of 700 instructions of a block go.
// Measured: 791 and 789 us in two runs on an H100, 104% of the library and of cuDNN, 78% of the
//   peak, 695 TFLOP/s: 2% faster than rung 11, where 3% were predicted. Causal 437 us, 111%, 629
//   TFLOP/s. At 16384 3.01 ms, 112% of cuDNN, 731 TFLOP/s; causal 1.61 ms, 119% of cuDNN, 683
//   TFLOP/s. At 4097 822 us, 112% of the library; causal 495 us, 102.5%. Heads of 64: 640 us, 91%
//   of the library: a loss, of 8% on rung 11 in the same run, whose cause is open (README); causal
//   332 us, 101%: a loss of 2%; 160% of the flash kernel. 170% were predicted of a slower library
//   (README); of the flash kernel it is 202%, causal 213%, at 16384 212% and 228%.
// Sizes: any LENGTH; HEAD_DIM 64 or 128.
//! constant LENGTH = query.size(2)
//! constant HEAD_DIM = query.size(3)
//! constant CAUSAL = causal.size(0) - 1
//! constant FP16 = 0
//! constant HEADS = query.size(0) * query.size(1)
//! tensormap query_tiles = query shape=(HEADS, LENGTH, HEAD_DIM) box=(1, 64, 64) swizzle=128
//! tensormap key_tiles = key shape=(HEADS, LENGTH, HEAD_DIM) box=(1, 128, 64) swizzle=128
//! tensormap value_tiles = value shape=(HEADS, LENGTH, HEAD_DIM) box=(1, 128, 64) swizzle=128
//! tensormap out_tiles = out shape=(HEADS, LENGTH, HEAD_DIM) box=(1, 64, 64) swizzle=128
//! tune     STAGES = 4
//! tune     PROCESSORS = 132
//! scratch  counter int[1]
//! launch   reset grid=(1) block=(1) args=(counter)
//! launch   attention grid=(min(PROCESSORS, ceil_div(LENGTH, 128) * HEADS)) block=(384) shared=HEAD_DIM*512+STAGES*HEAD_DIM*256+128 args=(query_tiles, key_tiles, value_tiles, out_tiles, counter)
#define DEVICE __device__ __forceinline__
#if FP16
#define TYPE "f16"
#else
#define TYPE "bf16"
#endif
static_assert(HEAD_DIM == 64 || HEAD_DIM == 128);

using Address = unsigned;  // in shared memory
using Descriptor = unsigned long long;
struct alignas(64) TensorMap {
  unsigned long long words[16];
};

constexpr int kKeys = 128;                              // in a block, visited at once
constexpr int kGroup = 128;                             // threads that share an instruction
constexpr int kGroups = 2;                              // that multiply; 64 queries each
constexpr int kQueries = kGroups * 64;                  // in a tile
constexpr int kThreads = (1 + kGroups) * kGroup;       // the producer's group is the first
constexpr int kQueryBytes = 64 * HEAD_DIM * 2;          // of a group
constexpr int kTileBytes = kKeys * HEAD_DIM * 2;        // of keys, or of values

DEVICE Address SharedAddress(const void* pointer) {
  return static_cast<Address>(__cvta_generic_to_shared(pointer));
}

// Tiles of queries, and heads whose keys and values take at most 32 MB: the cache holds them.
constexpr int kTiles = (LENGTH + kQueries - 1) / kQueries;
constexpr int kFit = (32 << 20) / (LENGTH * HEAD_DIM * 4) + (LENGTH * HEAD_DIM * 4 > 32 << 20);

// A tile of queries of a head, and the blocks of keys that it visits.
struct Place {
  int head, row, blocks, first_masked;
};

// Section by section; in a section the longest tiles first, all its heads side by side.
DEVICE Place PlaceOf(int number) {
  const int section = number / (kFit * kTiles), in_section = number % (kFit * kTiles);
  const int heads = min(HEADS - section * kFit, kFit);  // the last section may have fewer
  const int row = (kTiles - 1 - in_section / heads) * kQueries;
  const int seen = CAUSAL ? min(row + kQueries, LENGTH) : LENGTH;  // by the last of the queries
  return {section * kFit + in_section % heads, row, (seen + kKeys - 1) / kKeys,
          (CAUSAL ? min(row + 1, LENGTH) : LENGTH) / kKeys};
}

// A place in the ring of tiles, and the parity of its barriers there.
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

// Waits for the end of the phase of this parity. A wait without end is a bug: a store to no memory
// ends the kernel. (After a trap the compiler gives all groups the registers of the launch.)
DEVICE void Wait(Address barrier, unsigned parity) {
  for (int tries = 0; !HasEnded(barrier, parity); ++tries)
    if (tries == 1 << 24) asm volatile("st.global.u32 [%0], 0;" ::"l"(0ll) : "memory");
}

// Copies `rows` rows of a head from `row` on, in parts of 64 columns: rows of 128 bytes in shared
// memory, chunks of 16 bytes swapped as c ^ row % 8, zeros beyond the head. `barrier` counts all of
// these bytes.
template <int rows>
DEVICE void LoadTile(Address target, const TensorMap& map, int row, int head, Address barrier) {
#pragma unroll
  for (int column = 0; column < HEAD_DIM; column += 64)
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
        "[%1, {%2, %3, %4}], [%5];" ::"r"(target + column * rows * 2),
        "l"(&map), "r"(column), "r"(row), "r"(head), "r"(barrier)
        : "memory");
}

// ---- The matrix unit.

// A tile of rows of 128 bytes, swapped as above, eight rows every 1024 bytes, from an address that
// is a multiple of 1024. Fields: address / 16 in bits 0 to 13; `next` / 16 from bit 16; 1024 / 16
// from bit 32; 1 in bits 62 and 63 for this swapping. `next` is unused for queries and keys, which
// are added up along their rows; for values, added up across them, it leads to the next 64 columns.
constexpr __host__ __device__ Descriptor DescriptorOf(Address tile, unsigned next) {
  return Descriptor{(tile & 0x3FFFF) >> 4} | Descriptor{next >> 4} << 16 |
         Descriptor{1024 / 16} << 32 | Descriptor{1} << 62;
}
static_assert(DescriptorOf(0x400, 16) == 0x4000004000010040);
static_assert(DescriptorOf(227 * 1024, 16384) == 0x40000040040038C0);

// Sixteen columns further along: 32 bytes, and after 64 columns the next part of the tile.
template <int rows>
DEVICE constexpr Descriptor Columns(int step) {
  return (step / 4 * rows * 128 + step % 4 * 32) / 16;
}

// Before the first multiplication, and after its registers were touched by other instructions.
DEVICE void FenceSums() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

// The multiplications started since the last call make a group.
DEVICE void CommitMultiplies() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Waits until at most `pending` groups are at work.
template <int pending>
DEVICE void WaitMultiplies() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

// Keeps the compiler from using registers before the wait that stands above.
template <int count>
DEVICE void Settle(float (&sum)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+f"(sum[i])::"memory");
}

// The same for operands.
template <int count>
DEVICE void Settle(unsigned (&operand)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+r"(operand[i])::"memory");
}

#define FOUR(i) "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3])
#define SIXTEEN(i) FOUR(i), FOUR(i + 4), FOUR(i + 8), FOUR(i + 12)
#define REGISTERS_32 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, " \
  "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define REGISTERS_64 REGISTERS_32 ", " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, " \
  "%49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

// Starts sum (64 x 128) = a (64 x 16) b^T (128 x 16), added to what sum holds where `add`. Of
// thread 32 w + 4 g + t, sum[4 j + 2 h + e] is row 16 w + g + 8 h, column 8 j + 2 t + e.
DEVICE void Multiply(float (&sum)[64], Descriptor a, Descriptor b, int add) {
  asm volatile(
      "{\n.reg .pred p;\n"
      "setp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32." TYPE "." TYPE " {" REGISTERS_64 "}, "
      "%64, %65, p, 1, 1, 0, 0;\n}"
      : SIXTEEN(0), SIXTEEN(16), SIXTEEN(32), SIXTEEN(48)
      : "l"(a), "l"(b), "r"(add));
}

// Starts sum (64 x 128) += a (64 x 16) b (16 x 128), with a in registers: pairs of rows g and
// g + 8 at columns 2 t, then of both at 2 t + 8. The last 1: b's rows run along those of sum.
DEVICE void Multiply(float (&sum)[64], const unsigned* a, Descriptor b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n128k16.f32." TYPE "." TYPE " {" REGISTERS_64 "}, "
      "{%64, %65, %66, %67}, %68, 1, 1, 1, 1;"
      : SIXTEEN(0), SIXTEEN(16), SIXTEEN(32), SIXTEEN(48)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

// The same for heads of 64.
DEVICE void Multiply(float (&sum)[32], const unsigned* a, Descriptor b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." TYPE "." TYPE " {" REGISTERS_32 "}, "
      "{%32, %33, %34, %35}, %36, 1, 1, 1, 1;"
      : SIXTEEN(0), SIXTEEN(16)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

// Starts the scores of 64 queries and kKeys keys.
DEVICE void StartScores(float (&score)[kKeys / 2], Address queries, Address keys) {
#pragma unroll
  for (int step = 0; step < HEAD_DIM / 16; ++step)
    Multiply(score, DescriptorOf(queries, 16) + Columns<64>(step),
             DescriptorOf(keys, 16) + Columns<kKeys>(step), step > 0);
  CommitMultiplies();
}

// Starts the addition of kKeys weighted values.
DEVICE void StartOutput(float (&sum)[HEAD_DIM / 2], const unsigned (&weight)[kKeys / 4],
                        Address values) {
#pragma unroll
  for (int step = 0; step < kKeys / 16; ++step)  // of 16 keys: two times 1024 bytes
    Multiply(sum, &weight[4 * step], DescriptorOf(values, kKeys * 128) + step * (2048 / 16));
  CommitMultiplies();
}

// ---- Registers of a group of 128 threads: 3 x 168 at the start, 24 + 2 x 240 then.

template <int count>
DEVICE void ShrinkRegisters() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}

template <int count>
DEVICE void GrowRegisters() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}

// ---- Turns. A group waits for its turn, and passes it on to the next: each turn has a barrier, of
// the group that waits and the group that arrives.

DEVICE void AwaitTurn(int group) {
  asm volatile("bar.sync %0, %1;" ::"r"(4 + group), "n"(2 * kGroup) : "memory");
}

DEVICE void PassTurn(int group) {
  asm volatile("bar.arrive %0, %1;" ::"r"(4 + (group + 1) % kGroups), "n"(2 * kGroup) : "memory");
}

// ---- The softmax. A thread has parts of two rows, g and g + 8; the other parts are those of the
// threads with the same g.

// The scores times this are exponents of 2.
constexpr float kScale = 1.4426950409f * (HEAD_DIM == 64 ? 0.125f : 0.0883883476f);

DEVICE float MinusInfinity() { return __int_as_float(0xff800000); }

DEVICE float PowerOfTwo(float value) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(value));
  return power;
}

// Two numbers rounded to 16 bits, the first in the lower half.
DEVICE unsigned Pack(float low, float high) {
  unsigned pair;
  asm("cvt.rn." TYPE "x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

DEVICE float MaximumOfRow(float value) {
  value = fmaxf(value, __shfl_xor_sync(~0u, value, 1));
  return fmaxf(value, __shfl_xor_sync(~0u, value, 2));
}

DEVICE float SumOfRow(float value) {
  value += __shfl_xor_sync(~0u, value, 1);
  return value + __shfl_xor_sync(~0u, value, 2);
}

// Of each of the two rows: the reference score, and this thread's part of the sum of powers.
struct Rows {
  float reference[2], sum[2];
};

// Hides the keys that a query must not see: those past the end, and where CAUSAL later ones. `key`
// and `query` are the thread's first.
DEVICE void Mask(float (&score)[kKeys / 2], int key, int query) {
#pragma unroll
  for (int i = 0; i < kKeys / 2; ++i) {
    const int row = query + i / 2 % 2 * 8, column = key + i / 4 * 8 + i % 2;
    if (column >= LENGTH || (CAUSAL && column > row)) score[i] = MinusInfinity();
  }
}

// How far, in powers of 2, a score may lie above the reference.
constexpr float kSlack = 8;

// Scores become powers, of the distance to the row's reference. Returns true if a reference of the
// warp's moved: then what was summed up before is to be multiplied by `shrink`.
DEVICE bool Weigh(float (&score)[kKeys / 2], Rows& rows, float (&shrink)[2]) {
  float even[2] = {rows.reference[0], rows.reference[1]}, odd[2] = {even[0], even[1]};
#pragma unroll
  for (int i = 0; i < kKeys / 2; i += 2) {
    even[i / 2 % 2] = fmaxf(even[i / 2 % 2], score[i]);
    odd[i / 2 % 2] = fmaxf(odd[i / 2 % 2], score[i + 1]);
  }
  float base[2], offset[2];
  bool moved = false;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const float largest = MaximumOfRow(fmaxf(even[h], odd[h]));
    shrink[h] = 1;
    if ((largest - rows.reference[h]) * kScale > kSlack) {
      shrink[h] = PowerOfTwo((rows.reference[h] - largest) * kScale);
      rows.reference[h] = largest;
      moved = true;
    }
    // A row that has seen no key yet: (-inf) - (-inf) would be no number.
    base[h] = rows.reference[h] == MinusInfinity() ? 0 : rows.reference[h];
    offset[h] = base[h] * kScale;
  }
  // The fused multiply-add below rounds once, the offset is rounded before it: with huge scores
  // they are far apart even for the largest. There the difference comes first.
  if (__any_sync(~0u, fmaxf(fabsf(offset[0]), fabsf(offset[1])) > 1e6f)) {
#pragma unroll
    for (int i = 0; i < kKeys / 2; ++i) score[i] -= base[i / 2 % 2];
    offset[0] = offset[1] = 0;
  }
  float sum[2] = {0, 0};
#pragma unroll
  for (int i = 0; i < kKeys / 2; ++i) {
    score[i] = PowerOfTwo(fmaf(score[i], kScale, -offset[i / 2 % 2]));
    sum[i / 2 % 2] += score[i];
  }
#pragma unroll
  for (int h = 0; h < 2; ++h) rows.sum[h] = rows.sum[h] * shrink[h] + sum[h];
  return __any_sync(~0u, moved);
}

// What a thread has of the scores of 16 keys is what it has to give of weights: rounded, in pairs.
DEVICE void Round(const float (&score)[kKeys / 2], unsigned (&weight)[kKeys / 4]) {
#pragma unroll
  for (int i = 0; i < kKeys / 4; ++i) weight[i] = Pack(score[2 * i], score[2 * i + 1]);
}

DEVICE void Scale(float (&sum)[HEAD_DIM / 2], const float (&factor)[2]) {
#pragma unroll
  for (int i = 0; i < HEAD_DIM / 2; ++i) sum[i] *= factor[i / 2 % 2];
}

// ---- The result.

// Four 8 x 8 blocks; lanes 8 i to 8 i + 7 give the addresses of the rows of block i, and the lane
// numbered 4 g + t holds elements 2 t and 2 t + 1 of row g.
DEVICE void StoreBlocks(Address target, unsigned first, unsigned second, unsigned third,
                        unsigned fourth) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(target),
               "r"(first), "r"(second), "r"(third), "r"(fourth)
               : "memory");
}

// Shows this thread's writes to shared memory to the copy engine.
DEVICE void FenceForCopies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// The threads of a group. Barrier 0 is __syncthreads()'.
DEVICE void SyncGroup(int group) {
  asm volatile("bar.sync %0, %1;" ::"r"(1 + group), "n"(kGroup) : "memory");
}

// Starts to write 64 rows of a head; what lies beyond it is left out.
DEVICE void StoreTile(Address source, const TensorMap& map, int row, int head) {
#pragma unroll
  for (int column = 0; column < HEAD_DIM; column += 64)
    asm volatile(
        "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(
            &map),
        "r"(column), "r"(row), "r"(head), "r"(source + column * 64 * 2)
        : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Waits until this thread's stores have read shared memory.
DEVICE void WaitStoresRead() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }

// Waits until this thread's stores are done.
DEVICE void WaitStores() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

// Lays the group's 64 rows out in `tile`, in the swapped order.
DEVICE void LayOut(float (&sum)[HEAD_DIM / 2], const Rows& rows, Address tile) {
  const int warp = threadIdx.x % kGroup / 32, lane = threadIdx.x % 32;
  const int row = 16 * warp + lane % 16, chunk = lane / 16;  // whose address this lane gives
  float factor[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const float total = SumOfRow(rows.sum[h]);
    factor[h] = total == 0 ? 0 : 1 / total;  // a row that sees no key becomes zeros
  }
  Scale(sum, factor);
#pragma unroll
  for (int j = 0; j < HEAD_DIM / 8; j += 2) {  // chunks of 8 columns
    const float* const part = &sum[4 * j];
    StoreBlocks(tile + j / 8 * 64 * 128 + row * 128 + ((j % 8 + chunk) ^ row % 8) * 16,
                Pack(part[0], part[1]), Pack(part[2], part[3]), Pack(part[4], part[5]),
                Pack(part[6], part[7]));
  }
}

extern "C" __global__ void reset(int* counter) { *counter = 0; }

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    attention(const __grid_constant__ TensorMap query_tiles,
              const __grid_constant__ TensorMap key_tiles,
              const __grid_constant__ TensorMap value_tiles,
              const __grid_constant__ TensorMap out_tiles, int* counter) {
  extern __shared__ __align__(1024) unsigned char shared[];
  const Address queries = SharedAddress(shared);
  const Address results = queries + kGroups * kQueryBytes;
  const Address tiles = results + kGroups * kQueryBytes;
  const Address query_full = tiles + STAGES * kTileBytes;  // a barrier of 8 bytes a group
  const Address query_empty = query_full + 8 * kGroups;    // another
  const Address full = query_empty + 8 * kGroups;          // one a stage
  const Address empty = full + 8 * STAGES;                 // another
  // Of each group: the number of its tile, or one past all if there is none left.
  volatile int* const numbers = reinterpret_cast<int*>(shared + (empty + 8 * STAGES - queries));
  if (threadIdx.x == 0) {
    for (int group = 0; group < kGroups; ++group) {
      InitBarrier(query_full + 8 * group, 1);
      InitBarrier(query_empty + 8 * group, kGroup / 32);
    }
    for (int stage = 0; stage < STAGES; ++stage) {
      InitBarrier(full + 8 * stage, 1);
      InitBarrier(empty + 8 * stage, kGroups * kGroup / 32);
    }
    FenceBarrierInit();
  }
  __syncthreads();
  Ring ring;
  if (threadIdx.x < kGroup) {
    ShrinkRegisters<24>();
    if (threadIdx.x == 0) {
      int next = blockIdx.x;
      for (int round = 0;; ++round) {
        const int number = next;
        const bool is_tile = number < kTiles * HEADS;
        const Place place = PlaceOf(is_tile ? number : 0);
        for (int i = 0; i < kGroups; ++i) {
          // Parity 1 of a fresh barrier counts as ended: the first round finds all places empty.
          Wait(query_empty + 8 * i, round % 2 ^ 1);
          numbers[i] = number;
          if (is_tile) {
            ArriveExpecting(query_full + 8 * i, kQueryBytes);
            LoadTile<64>(queries + i * kQueryBytes, query_tiles, place.row + i * 64, place.head,
                         query_full + 8 * i);
          } else {
            Arrive(query_full + 8 * i);
          }
        }
        if (!is_tile) break;
        const auto load = [&](const TensorMap& map, int block) {
          Wait(empty + 8 * ring.stage, ring.parity ^ 1);
          ArriveExpecting(full + 8 * ring.stage, kTileBytes);
          LoadTile<kKeys>(tiles + ring.stage * kTileBytes, map, block * kKeys, place.head,
                          full + 8 * ring.stage);
          ring.Advance();
        };
        load(key_tiles, 0);
        next = gridDim.x + atomicAdd(counter, 1);
        for (int block = 1; block < place.blocks; ++block) {
          load(key_tiles, block);
          load(value_tiles, block - 1);
        }
        load(value_tiles, place.blocks - 1);
      }
    }
  } else {
    GrowRegisters<240>();
    const int group = threadIdx.x / kGroup - 1, lane = threadIdx.x % 32;
    const Address group_queries = queries + group * kQueryBytes;
    const Address group_results = results + group * kQueryBytes;
    const bool stores = threadIdx.x % kGroup == 0;  // this thread starts the group's stores
    const auto release = [&](Address barrier) {
      if (lane == 0) Arrive(barrier);
    };
    if (group == kGroups - 1) PassTurn(group);  // the first turn is the first group's
    for (int round = 0;; ++round) {
      Wait(query_full + 8 * group, round % 2);
      const int number = numbers[group];
      if (number >= kTiles * HEADS) break;
      const Place place = PlaceOf(number);
      const int first_query = place.row + group * 64;
      const int query = first_query + threadIdx.x % kGroup / 32 * 16 + lane / 4;  // the thread's
      Rows rows = {{MinusInfinity(), MinusInfinity()}, {0, 0}};
      float sum[HEAD_DIM / 2] = {};
      float score[kKeys / 2], shrink[2];
      unsigned weight[kKeys / 4];
      // Masks and weighs the scores of a block; true if the sums are to be scaled.
      const auto weigh = [&](int block) {
        if (block >= place.first_masked) Mask(score, block * kKeys + lane % 4 * 2, query);
        return Weigh(score, rows, shrink);
      };
      Wait(full + 8 * ring.stage, ring.parity);
      AwaitTurn(group);
      FenceSums();
      StartScores(score, group_queries, tiles + ring.stage * kTileBytes);
      PassTurn(group);
      WaitMultiplies<0>();
      Settle(score);
      release(empty + 8 * ring.stage);
      ring.Advance();
      weigh(0);
      Round(score, weight);
      for (int block = 1; block < place.blocks; ++block) {
        const Ring keys = ring;
        ring.Advance();  // to the values of the block before
        Wait(full + 8 * keys.stage, keys.parity);
        AwaitTurn(group);
        FenceSums();
        StartScores(score, group_queries, tiles + keys.stage * kTileBytes);
        Wait(full + 8 * ring.stage, ring.parity);
        FenceSums();
        StartOutput(sum, weight, tiles + ring.stage * kTileBytes);
        PassTurn(group);
        WaitMultiplies<1>();  // the scores are done
        Settle(score);
        release(empty + 8 * keys.stage);
        const bool moved = weigh(block);
        WaitMultiplies<0>();
        Settle(sum);
        Settle(weight);
        release(empty + 8 * ring.stage);
        ring.Advance();
        Round(score, weight);
        if (moved) Scale(sum, shrink);
      }
      release(query_empty + 8 * group);
      Wait(full + 8 * ring.stage, ring.parity);
      FenceSums();
      StartOutput(sum, weight, tiles + ring.stage * kTileBytes);
      WaitMultiplies<0>();
      Settle(sum);
      release(empty + 8 * ring.stage);
      ring.Advance();
      if (stores) WaitStoresRead();  // the results of the round before
      SyncGroup(group);
      LayOut(sum, rows, group_results);
      FenceForCopies();
      SyncGroup(group);
      if (stores) StoreTile(group_results, out_tiles, first_query, place.head);
    }
    if (stores) WaitStores();
  }
}
