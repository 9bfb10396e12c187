// Weights of four bits, tensor cores.
//
// Idea: 16 rows of weights are the left side of mma.sync, up to 16 rows of x the right one, padded
//   to 8 or 16: two weights become one operand by three instructions, and no multiply-add is left.
//   The order of k within an operand is free if both sides have the same, so the bits are used as
//   they lie. A warp keeps to its groups (two of 32), whose x stays in registers; 16 warps add up
//   by way of shared memory. Weights come by cp.async, three steps ahead, each thread's own.
// Prediction: 2700% of the library with one row, 92% of the speed of a copy; with 16 rows 2500%.
// Measured: on an H100 15.71 us, 3607.4% of the library, 55.2% of the speed of a copy (one row);
//   19.38 us, 2922.3% of the library, 45.6% of the speed of a copy (16 rows).
// Sizes: groups of 128; 16 rows of x after the other, each with all weights. More than 4096
// features take more registers.
//! constant ROWS = x.size(0)
//! constant FEATURES = x.size(1)
//! constant OUTPUTS = packed.size(0)
//! constant GROUPS = scales.size(1)
//! constant PACKS = FEATURES / 32
//! tune     BLOCKS = 132
//! tune     STAGES = 4 3
//! constant PER_WARP = ceil_div(GROUPS, 16)
//! dim      ring_bytes = 16384 * PER_WARP * STAGES
//! launch   multiply grid=(BLOCKS, ceil_div(ROWS, 16)) block=(512) shared=ring_bytes args=(x, packed, scales, zeros, out)
#define DEVICE __device__ __forceinline__
static_assert(FEATURES == 128 * GROUPS);

using Half = unsigned short;  // the bits of a bfloat16
using Byte = unsigned char;
constexpr int kWarps = 16, kThreads = 32 * kWarps;
constexpr int kColumns = 16;                  // of the result, at a time
constexpr int kTiles = ROWS > 8 ? 2 : 1;      // of eight rows of x
constexpr int kRows = ROWS < 16 ? ROWS : 16;  // of x, that a block takes at most

// bfloat16 is the upper half of a float.
DEVICE float ToFloat(Half bits) { return __uint_as_float(static_cast<unsigned>(bits) << 16); }

// Two numbers rounded to bfloat16, the first in the lower half.
DEVICE unsigned PackTwo(float low, float high) {
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

// The differences of two numbers of bfloat16 each.
DEVICE unsigned SubtractTwo(unsigned a, unsigned b) {
  unsigned pair;
  asm("sub.rn.bf16x2 %0, %1, %2;" : "=r"(pair) : "r"(a), "r"(b));
  return pair;
}

// 128 + v in bfloat16 is 0x4300 | v for v below 128. The pair i of a word's eight weights, 128
// added to each: the weights i and i + 4.
DEVICE unsigned PairOf(unsigned word, int i) { return (word >> 4 * i & 0x000f000f) | 0x43004300; }

// sum (16 x 8) += a (16 x 16) b^T (8 x 16). Of the lane numbered 4 g + t, sum is rows g and g + 8,
// columns 2 t and 2 t + 1; a the pairs of k at 2 t and 2 t + 8 in rows g, g + 8; b those in row g.
DEVICE void Multiply(float (&sum)[4], const unsigned (&a)[4], const unsigned* b) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Starts a copy of 16 bytes.
DEVICE void CopyAsync(void* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                   static_cast<unsigned>(__cvta_generic_to_shared(to))),
               "l"(from)
               : "memory");
}

// The copies started since the last call make a group.
DEVICE void CommitCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most `pending` groups of this thread are on their way.
template <int pending>
DEVICE void WaitCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

// What a thread uses of 16 rows of weights: of the lane numbered 4 g + t, in each group of its
// warp, the quarter t of rows g and g + 8.
struct Stage {
  uint4 packs[PER_WARP][2][kThreads];
};

// The same of x: of each group the quarter t of rows g and g + 8, as pairs of values that are four
// apart. Those of a word of weights are pairs[...][word].
struct Values {
  unsigned pairs[PER_WARP][kTiles][4][4];

  DEVICE void Load(const uint4* x, int rows) {
    const int g = threadIdx.x % 32 / 4;
#pragma unroll
    for (int i = 0; i < PER_WARP; ++i)
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile)
#pragma unroll
        for (int word = 0; word < 4; ++word) {
          const int row = g + 8 * tile, pack = PackOf(i);
          const uint4 eight = row < rows && pack < PACKS
                                  ? x[(long long)row * (FEATURES / 8) + 4 * pack + word]
                                  : uint4();
          unsigned(&to)[4] = pairs[i][tile][word];
          to[0] = __byte_perm(eight.x, eight.z, 0x5410);
          to[1] = __byte_perm(eight.x, eight.z, 0x7632);
          to[2] = __byte_perm(eight.y, eight.w, 0x5410);
          to[3] = __byte_perm(eight.y, eight.w, 0x7632);
        }
  }
  // Of a thread's quarter of the warp's group i.
  static DEVICE int PackOf(int i) {
    return (threadIdx.x / 32 * PER_WARP + i) * 4 + threadIdx.x % 4;
  }
};

// The scales and zeros of a thread's two rows of weights.
struct Scales {
  Half scales[PER_WARP][2];
  Byte zeros[PER_WARP][2];

  DEVICE void Load(const Half* all_scales, const Byte* all_zeros, int first) {
    const int g = threadIdx.x % 32 / 4;
#pragma unroll
    for (int i = 0; i < PER_WARP; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const long long column = min(first + half * 8 + g, OUTPUTS - 1);  // the last one again
        const int group = min(Values::PackOf(i) / 4, GROUPS - 1);
        scales[i][half] = __ldg(all_scales + column * GROUPS + group);
        zeros[i][half] = __ldg(all_zeros + column * GROUPS + group);
      }
  }
};

using Sums = float[kTiles][4];

// Adds one group: weights * x, then times the scales of the two rows.
DEVICE void AddGroup(Sums& sums, const uint4 (&packs)[2], const unsigned (&x)[kTiles][4][4],
                     const Half (&scales)[2], const Byte (&zeros)[2]) {
  const unsigned words[2][4] = {{packs[0].x, packs[0].y, packs[0].z, packs[0].w},
                                {packs[1].x, packs[1].y, packs[1].z, packs[1].w}};
  const unsigned offsets[2] = {PairOf(zeros[0] * 0x10001, 0), PairOf(zeros[1] * 0x10001, 0)};
  Sums products = {};
#pragma unroll
  for (int word = 0; word < 4; ++word)
#pragma unroll
    for (int step = 0; step < 2; ++step) {
      unsigned weights[4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        weights[i] = SubtractTwo(PairOf(words[i % 2][word], 2 * step + i / 2), offsets[i % 2]);
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile)
        Multiply(products[tile], weights, &x[tile][word][2 * step]);
    }
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile)
#pragma unroll
    for (int i = 0; i < 4; ++i) sums[tile][i] += ToFloat(scales[i / 2]) * products[tile][i];
}

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    multiply(const uint4* x, const uint4* packed, const Half* scales, const Byte* zeros,
             Half* out) {
  extern __shared__ __align__(128) unsigned char shared[];
  Stage* const stages = reinterpret_cast<Stage*>(shared);
  // By turns, so that one barrier is enough: whoever is a turn ahead writes the other one.
  __shared__ float parts[2][kWarps][8 * kTiles][kColumns];
  const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const int rows = min(kRows, ROWS - static_cast<int>(blockIdx.y) * 16);
  x += (long long)blockIdx.y * 16 * (FEATURES / 8);
  out += (long long)blockIdx.y * 16 * OUTPUTS;

  int to_load = blockIdx.x * kColumns, stage_to_load = 0;
  const auto load = [&] {
    if (to_load < OUTPUTS) {
#pragma unroll
      for (int i = 0; i < PER_WARP; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const long long column = min(to_load + half * 8 + g, OUTPUTS - 1);  // the last one again
          const int pack = min(Values::PackOf(i), PACKS - 1);
          CopyAsync(&stages[stage_to_load].packs[i][half][threadIdx.x],
                    packed + column * PACKS + pack);
        }
    }
    CommitCopies();  // an empty group past the end, so that counting groups counts stages
    to_load += BLOCKS * kColumns;
    stage_to_load = stage_to_load + 1 == STAGES ? 0 : stage_to_load + 1;
  };
  for (int i = 0; i < STAGES - 1; ++i) load();
  int first = blockIdx.x * kColumns, stage = 0;
  Scales now;
  now.Load(scales, zeros, first);
  Values values;
  values.Load(x, rows);

  for (int turn = 0; first < OUTPUTS; turn ^= 1) {
    WaitCopies<STAGES - 2>();
    load();
    Scales next;
    next.Load(scales, zeros, first + BLOCKS * kColumns);
    Sums sums = {};
#pragma unroll
    for (int i = 0; i < PER_WARP; ++i) {
      const uint4 packs[2] = {stages[stage].packs[i][0][threadIdx.x],
                              stages[stage].packs[i][1][threadIdx.x]};
      AddGroup(sums, packs, values.pairs[i], now.scales[i], now.zeros[i]);
    }
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        parts[turn][warp][8 * tile + 2 * t + i % 2][i / 2 * 8 + g] = sums[tile][i];
    __syncthreads();
    const int row = threadIdx.x / kColumns, column = threadIdx.x % kColumns;
    if (row < rows && first + column < OUTPUTS) {
      float total = 0;
      for (int i = 0; i < kWarps; ++i) total += parts[turn][i][row][column];
      out[(long long)row * OUTPUTS + first + column] = PackTwo(total, 0);
    }
    now = next;
    first += BLOCKS * kColumns;
    stage = stage + 1 == STAGES ? 0 : stage + 1;
  }
}
