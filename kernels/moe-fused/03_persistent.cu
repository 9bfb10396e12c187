// A mixture of experts: blocks that stay, gate and up in one product.
//
// Idea: tiles of all experts are the work of blocks that stay, a producer group and two consumer
//   groups of wgmma. In the first product a tile's weights are 128 rows of the gate's and the same
//   128 of up's, so that a thread holds both of its elements and SwiGLU is applied in registers.
//   Its rows of x are gathered as they are copied, 16 bytes a thread, into the pattern that wgmma
//   reads; weights come by the copy engine. The second product writes results, times their weights,
//   to their places; a third launch adds a token's up. A group of 64 rows that has none is skipped.
// Prediction: 130% of the library: products at 600 TFLOP/s are 690 us of 412 GFLOP; the library
//   spends 250 us more on gathering, SwiGLU, weights and sums.
// Measured: on an H200 765 us, 173% of eager with grouped_mm, 149% of compiled.
// Sizes: multiples of 8 features and of 8 hidden elements.
//! constant TOKENS = x.size(0)
//! constant FEATURES = x.size(1)
//! constant TOP = weights.size(1)
//! constant EXPERTS = gate.size(0)
//! constant HIDDEN = gate.size(1)
//! scratch  hidden bfloat16[TOKENS * TOP * HIDDEN]
//! scratch  results bfloat16[TOKENS * TOP * FEATURES]
//! tensormap gate_tiles = gate shape=(EXPERTS * HIDDEN, FEATURES) box=(128, 64) swizzle=128
//! tensormap up_tiles = up shape=(EXPERTS * HIDDEN, FEATURES) box=(128, 64) swizzle=128
//! tensormap down_tiles = down shape=(EXPERTS * FEATURES, HIDDEN) box=(256, 64) swizzle=128
//! tensormap hidden_tiles = hidden shape=(TOKENS * TOP, HIDDEN) box=(128, 64) swizzle=128
//! tune     STAGES = 4
//! tune     PROCESSORS = 132
//! launch expand grid=(PROCESSORS) block=(384) shared=STAGES*49168+8*EXPERTS+8 args=(x, order, first, gate_tiles, up_tiles, hidden)
//! launch contract grid=(PROCESSORS) block=(384) shared=STAGES*49168+8*EXPERTS+8 args=(hidden_tiles, down_tiles, weights, order, first, results)
//! launch add grid=(ceil_div(TOKENS * FEATURES, 2048)) block=(256) args=(results, out)
#define DEVICE __device__ __forceinline__

using BFloat16 = unsigned short;  // its bits
using Address = unsigned;         // in shared memory
using Descriptor = unsigned long long;
struct alignas(64) TensorMap {
  unsigned long long words[16];
};

constexpr int kTileRows = 128, kTileColumns = 256;  // of a product, gate and up side by side
constexpr int kDepth = 64;                          // elements along k in a stage
constexpr int kABytes = kTileRows * kDepth * 2, kBBytes = kTileColumns * kDepth * 2;
constexpr int kStageBytes = kABytes + kBBytes;
constexpr int kGroup = 128;                       // threads that share an instruction
constexpr int kGroupRows = 64;                    // in an instruction
constexpr int kConsumers = 2 * kGroup;            // threads; the producer's group is the first
constexpr int kHiddenColumns = kTileColumns / 2;  // of a tile of the first product
constexpr int kHiddenAcross = (HIDDEN + kHiddenColumns - 1) / kHiddenColumns;
constexpr int kAcross = (FEATURES + kTileColumns - 1) / kTileColumns;  // of the second one
static_assert(FEATURES % 8 == 0 && HIDDEN % 8 == 0);  // rows are a multiple of 16 bytes
static_assert((long long)TOKENS * FEATURES < 1ll << 34);

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

// ---- Copies of 16 bytes, by threads: rows of x, wherever they are.

// Starts a copy of 16 bytes, or of zeros.
DEVICE void CopyAsync(Address target, const void* from, bool inside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(from),
               "r"(inside ? 16 : 0)
               : "memory");
}

// The copies started since the last call make a group.
DEVICE void CommitCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most `pending` groups of this thread are on their way.
template <int pending>
DEVICE void WaitCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

// Shows what this thread wrote to shared memory to the matrix unit.
DEVICE void FenceForWgmma() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

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

// Sums that the instruction wrote are read behind this line only: the compiler does not know when
// they are there.
DEVICE void TakeSums(float (&sum)[128]) {
#pragma unroll
  for (int i = 0; i < 128; ++i) asm volatile("" : "+f"(sum[i])::"memory");
}

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

// ---- Registers of a group of 128 threads: 3 x 168 at the start, 56 + 2 x 224 then.

template <int count>
DEVICE void ShrinkRegisters() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}

template <int count>
DEVICE void GrowRegisters() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}

// ---- A consumer group's work on a tile.

// Multiplies the group's 64 rows with 256 rows of weights, along all of k. A group without rows
// only lets the ring go on.
DEVICE void MultiplyTile(float (&sum)[128], Address stages, Address full, Address empty, Ring& ring,
                         int blocks, int group_row, bool has_rows) {
  const int lane = threadIdx.x % 32;
  int last_stage = -1;
  for (int block = 0; block < blocks; ++block, ring.Advance()) {
    Wait(full + 8 * ring.stage, ring.parity);
    if (has_rows) {
      const Address a_tile = stages + ring.stage * kStageBytes;
      const Descriptor a = DescriptorOf(a_tile + group_row * kDepth * 2);
      const Descriptor b = DescriptorOf(a_tile + kABytes);
      FenceSums();
#pragma unroll
      for (int step = 0; step < kDepth / 16; ++step)
        Multiply(sum, a + step * kStep, b + step * kStep, block > 0 || step > 0);
      CommitMultiplies();
      WaitMultiplies<1>();  // the block before is done
    }
    if (last_stage >= 0 && lane == 0) Arrive(empty + 8 * last_stage);
    last_stage = ring.stage;
  }
  WaitMultiplies<0>();
  if (last_stage >= 0 && lane == 0) Arrive(empty + 8 * last_stage);
  TakeSums(sum);
}

// Two numbers rounded to bf16, the first in the lower half.
DEVICE unsigned Pack(float low, float high) {
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

// Of four neighbouring lanes, t = 0 to 3, word j is a row's columns 8 j + 2 t and 8 j + 2 t + 1.
// Afterwards lane t has the eight columns from 8 t on.
DEVICE uint4 TurnFour(unsigned (&word)[4]) {
  const bool odd = threadIdx.x & 1, upper = threadIdx.x & 2;
#pragma unroll
  for (int i = 0; i < 4; i += 2) {
    const unsigned other = __shfl_xor_sync(~0u, odd ? word[i] : word[i + 1], 1);
    word[i] = odd ? other : word[i];
    word[i + 1] = odd ? word[i + 1] : other;
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const unsigned other = __shfl_xor_sync(~0u, upper ? word[i] : word[i + 2], 2);
    word[i] = upper ? other : word[i];
    word[i + 2] = upper ? word[i + 2] : other;
  }
  return make_uint4(word[0], word[1], word[2], word[3]);
}

// ---- Tiles of all experts.

// What every block works out first: where an expert's rows begin, and its tiles, if there were one
// column of them.
struct Experts {
  int first[EXPERTS + 1], tiles[EXPERTS + 1];
};

// Called by one warp, the first.
DEVICE void FillExperts(Experts& experts, const int* first) {
  const int lane = threadIdx.x;
  int before = 0;
  if (lane == 0) experts.tiles[0] = 0, experts.first[0] = __ldg(first);
  for (int start = 0; start < EXPERTS; start += 32) {
    const int expert = start + lane;
    int sum = 0;
    if (expert < EXPERTS) {
      const int end = __ldg(first + expert + 1);
      experts.first[expert + 1] = end;
      sum = (end - __ldg(first + expert) + kTileRows - 1) / kTileRows;
    }
    for (int step = 1; step < 32; step *= 2) {
      const int other = __shfl_up_sync(~0u, sum, step);
      if (lane >= step) sum += other;
    }
    if (expert < EXPERTS) experts.tiles[expert + 1] = before + sum;
    before += __shfl_sync(~0u, sum, 31);
  }
}

// A tile's place: rows of the order from `row` on, before `end`; columns from `column` on.
struct Spot {
  int expert = 0, row, end, column;

  // Tiles are asked for in rising order. All tiles down of an expert's column follow each other, so
  // that they share its weights.
  DEVICE void Find(int tile, const Experts& experts, int across, int columns) {
    while (experts.tiles[expert + 1] * across <= tile) ++expert;
    const int before = experts.tiles[expert], down = experts.tiles[expert + 1] - before;
    const int within = tile - before * across;
    row = experts.first[expert] + within % down * kTileRows;
    end = experts.first[expert + 1];
    column = within / down * columns;
  }
};

// ---- The first product: hidden = silu(gate x) * (up x), in the order of experts.

DEVICE float Swiglu(float gate, float up) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(gate * -1.4426950409f));
  return __fdividef(gate, 1 + power) * up;
}

// Of a producer's thread: chunk `threadIdx.x % 8` of every 16th row of a tile's stage.
constexpr int kLines = kGroup / 8, kRowsEach = kTileRows / kLines;

// Where the thread's rows of x begin, in chunks of 16 bytes. Rows past the end take the last one.
DEVICE void LookUp(unsigned (&at)[kRowsEach], const Spot& spot, const int* order) {
#pragma unroll
  for (int i = 0; i < kRowsEach; ++i) {
    const int row = min(spot.row + static_cast<int>(threadIdx.x) / 8 + i * kLines, spot.end - 1);
    at[i] = static_cast<unsigned>(__ldg(order + row)) / TOP * (FEATURES / 8) + threadIdx.x % 8;
  }
}

extern "C" __global__ void __launch_bounds__(kGroup + kConsumers, 1)
    expand(const uint4* x, const int* order, const int* first,
           const __grid_constant__ TensorMap gate_tiles, const __grid_constant__ TensorMap up_tiles,
           BFloat16* hidden) {
  extern __shared__ __align__(1024) unsigned char shared[];
  const Address stages = SharedAddress(shared);
  const Address full = stages + STAGES * kStageBytes;  // a barrier of 8 bytes a stage
  const Address empty = full + 8 * STAGES;             // another
  Experts& experts = *reinterpret_cast<Experts*>(shared + STAGES * (kStageBytes + 16));
  if (threadIdx.x < 32) FillExperts(experts, first);
  if (threadIdx.x == 32) {
    for (int stage = 0; stage < STAGES; ++stage) {
      InitBarrier(full + 8 * stage, kGroup + 1);
      InitBarrier(empty + 8 * stage, kConsumers / 32);
    }
    FenceBarrierInit();
  }
  __syncthreads();
  constexpr int kBlocks = (FEATURES + kDepth - 1) / kDepth;
  const int count = experts.tiles[EXPERTS] * kHiddenAcross;
  Ring ring;
  Spot spot;
  if (threadIdx.x < kGroup) {
    ShrinkRegisters<56>();
    const int line = threadIdx.x / 8, chunk = threadIdx.x % 8;
    const Address mine = line * 128 + (chunk ^ line % 8) * 16;  // kLines is a multiple of 8
    int tile = blockIdx.x, last_stage = -1;
    unsigned at[kRowsEach], next[kRowsEach];
    if (tile < count) {
      spot.Find(tile, experts, kHiddenAcross, kHiddenColumns);
      LookUp(next, spot, order);
    }
    while (tile < count) {
#pragma unroll
      for (int i = 0; i < kRowsEach; ++i) at[i] = next[i];
      const int b_row = spot.expert * HIDDEN + spot.column;
      tile += gridDim.x;
      if (tile < count) {  // its rows are looked up while this tile's are copied
        spot.Find(tile, experts, kHiddenAcross, kHiddenColumns);
        LookUp(next, spot, order);
      }
      for (int block = 0; block < kBlocks; ++block, ring.Advance()) {
        // Parity 1 of a fresh barrier counts as ended: the first round finds all stages empty.
        Wait(empty + 8 * ring.stage, ring.parity ^ 1);
        const Address stage = stages + ring.stage * kStageBytes, barrier = full + 8 * ring.stage;
        if (threadIdx.x == 0) {
          ArriveExpecting(barrier, kBBytes);
          LoadBox(stage + kABytes, gate_tiles, block * kDepth, b_row, barrier);
          LoadBox(stage + kABytes + kBBytes / 2, up_tiles, block * kDepth, b_row, barrier);
        }
        const bool inside = block * kDepth + chunk * 8 < FEATURES;
#pragma unroll
        for (int i = 0; i < kRowsEach; ++i)
          CopyAsync(stage + mine + i * kLines * 128, x + (inside ? at[i] + block * 8 : 0), inside);
        CommitCopies();
        if (last_stage >= 0) {
          WaitCopies<1>();  // those of the stage before are there
          FenceForWgmma();
          Arrive(full + 8 * last_stage);
        }
        last_stage = ring.stage;
      }
    }
    WaitCopies<0>();
    FenceForWgmma();
    if (last_stage >= 0) Arrive(full + 8 * last_stage);
  } else {
    GrowRegisters<224>();
    const int group_row = (threadIdx.x / kGroup - 1) * kGroupRows;  // in the tile
    const int warp = threadIdx.x % kGroup / 32, lane = threadIdx.x % 32;
    const int g = lane / 4, t = lane % 4;
    float sum[128];
    for (int tile = blockIdx.x; tile < count; tile += gridDim.x) {
      spot.Find(tile, experts, kHiddenAcross, kHiddenColumns);
      const bool has_rows = spot.row + group_row < spot.end;
      MultiplyTile(sum, stages, full, empty, ring, kBlocks, group_row, has_rows);
      if (!has_rows) continue;
        // Columns 0 to 127 are the gate's, the others up's.
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int row = spot.row + group_row + 16 * warp + g + 8 * h;
        BFloat16* const to = hidden + (long long)row * HIDDEN;
#pragma unroll
        for (int j = 0; j < kHiddenColumns / 8; j += 4) {
          unsigned word[4];
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const int at = 4 * (j + i) + 2 * h;
            word[i] = Pack(Swiglu(sum[at], sum[at + 64]), Swiglu(sum[at + 1], sum[at + 65]));
          }
          const uint4 eight = TurnFour(word);
          const int column = spot.column + 8 * (j + t);
          if (row < spot.end && column < HIDDEN) *reinterpret_cast<uint4*>(to + column) = eight;
        }
      }
    }
  }
}

// ---- The second product: down hidden, times the weights, written to their places.

extern "C" __global__ void __launch_bounds__(kGroup + kConsumers, 1)
    contract(const __grid_constant__ TensorMap hidden_tiles,
             const __grid_constant__ TensorMap down_tiles, const BFloat16* weights,
             const int* order, const int* first, BFloat16* results) {
  extern __shared__ __align__(1024) unsigned char shared[];
  const Address stages = SharedAddress(shared);
  const Address full = stages + STAGES * kStageBytes;  // a barrier of 8 bytes a stage
  const Address empty = full + 8 * STAGES;             // another
  Experts& experts = *reinterpret_cast<Experts*>(shared + STAGES * (kStageBytes + 16));
  if (threadIdx.x < 32) FillExperts(experts, first);
  if (threadIdx.x == 32) {
    for (int stage = 0; stage < STAGES; ++stage) {
      InitBarrier(full + 8 * stage, 1);
      InitBarrier(empty + 8 * stage, kConsumers / 32);
    }
    FenceBarrierInit();
  }
  __syncthreads();
  constexpr int kBlocks = (HIDDEN + kDepth - 1) / kDepth;
  const int count = experts.tiles[EXPERTS] * kAcross;
  Ring ring;
  Spot spot;
  if (threadIdx.x < kGroup) {
    ShrinkRegisters<56>();
    if (threadIdx.x > 0) return;
    for (int tile = blockIdx.x; tile < count; tile += gridDim.x) {
      spot.Find(tile, experts, kAcross, kTileColumns);
      for (int block = 0; block < kBlocks; ++block, ring.Advance()) {
        Wait(empty + 8 * ring.stage, ring.parity ^ 1);
        const Address stage = stages + ring.stage * kStageBytes, barrier = full + 8 * ring.stage;
        ArriveExpecting(barrier, kStageBytes);
        // A box may reach into the next expert's rows, or columns: these sums are not used.
        LoadBox(stage, hidden_tiles, block * kDepth, spot.row, barrier);
        LoadBox(stage + kABytes, down_tiles, block * kDepth, spot.expert * FEATURES + spot.column,
                barrier);
      }
    }
  } else {
    GrowRegisters<224>();
    const int group_row = (threadIdx.x / kGroup - 1) * kGroupRows;  // in the tile
    const int warp = threadIdx.x % kGroup / 32, lane = threadIdx.x % 32;
    const int g = lane / 4, t = lane % 4;
    float sum[128];
    for (int tile = blockIdx.x; tile < count; tile += gridDim.x) {
      spot.Find(tile, experts, kAcross, kTileColumns);
      const bool has_rows = spot.row + group_row < spot.end;
      int place[2];
      float weight[2];
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int row = spot.row + group_row + 16 * warp + g + 8 * h;
        place[h] = __ldg(order + min(row, spot.end - 1));
        weight[h] = __uint_as_float(static_cast<unsigned>(__ldg(weights + place[h])) << 16);
      }
      MultiplyTile(sum, stages, full, empty, ring, kBlocks, group_row, has_rows);
      if (!has_rows) continue;
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int row = spot.row + group_row + 16 * warp + g + 8 * h;
        BFloat16* const to = results + (long long)place[h] * FEATURES;
#pragma unroll
        for (int j = 0; j < kTileColumns / 8; j += 4) {
          unsigned word[4];
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const float* const part = &sum[4 * (j + i) + 2 * h];
            word[i] = Pack(part[0] * weight[h], part[1] * weight[h]);
          }
          const uint4 eight = TurnFour(word);
          const int column = spot.column + 8 * (j + t);
          if (row < spot.end && column < FEATURES) *reinterpret_cast<uint4*>(to + column) = eight;
        }
      }
    }
  }
}

// ---- The sum over a token's experts: a thread eight columns.
extern "C" __global__ void __launch_bounds__(256) add(const uint4* results, uint4* out) {
  constexpr int kChunks = FEATURES / 8;
  const long long at = blockIdx.x * 256ll + threadIdx.x;
  if (at >= (long long)TOKENS * kChunks) return;
  const uint4* const from = results + at / kChunks * TOP * kChunks + at % kChunks;
  float sum[8] = {};
#pragma unroll
  for (int i = 0; i < TOP; ++i) {
    const uint4 eight = __ldcs(from + i * kChunks);
    const unsigned words[] = {eight.x, eight.y, eight.z, eight.w};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      sum[2 * j] += __uint_as_float(words[j] << 16);
      sum[2 * j + 1] += __uint_as_float(words[j] & 0xffff0000);
    }
  }
  out[at] = make_uint4(Pack(sum[0], sum[1]), Pack(sum[2], sum[3]), Pack(sum[4], sum[5]),
                       Pack(sum[6], sum[7]));
}
