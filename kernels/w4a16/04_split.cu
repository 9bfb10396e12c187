// Weights of four bits, x in registers.
//
// Idea: a warp keeps to its quarter of every row (1024 weights where there are 4096), so that its
//   values of x stay in registers; blocks stay, and take four rows at a time. The next four rows
//   are asked for before these are used. Zeros cost one multiply-add for 32 weights: the sum of
//   x * (128 + weight) less (128 + zero) * the sum of x.
// Prediction: 2600% of the library, 90% of the speed of a copy.
// Measured: on an H100 14.39 us, 3937.8% of the library, 60.3% of the speed of a copy (one row);
//   166.8 us, 342.3% of the library, 5.3% of the speed of a copy (16 rows).
// Sizes: groups of 128; a row of x after the other, each with all weights. More than 4096 features
// take more registers.
//! constant ROWS = x.size(0)
//! constant FEATURES = x.size(1)
//! constant OUTPUTS = packed.size(0)
//! constant GROUPS = scales.size(1)
//! constant PACKS = FEATURES / 32
//! tune     BLOCKS = 528 396 264
//! launch   multiply grid=(BLOCKS, ROWS) block=(128) args=(x, packed, scales, zeros, out)
#define DEVICE __device__ __forceinline__
static_assert(FEATURES == 128 * GROUPS);

using Half = unsigned short;  // the bits of a bfloat16
using Byte = unsigned char;
constexpr int kWarps = 4, kThreads = 32 * kWarps;
constexpr int kRows = 4;                                   // at a time
constexpr int kPacks = (PACKS + kThreads - 1) / kThreads;  // of a row, in a thread

// bfloat16 is the upper half of a float.
DEVICE float ToFloat(Half bits) { return __uint_as_float(static_cast<unsigned>(bits) << 16); }

DEVICE void Unpack(uint4 pack, float (&values)[8]) {
  const unsigned pairs[] = {pack.x, pack.y, pack.z, pack.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    values[2 * i] = __uint_as_float(pairs[i] << 16);
    values[2 * i + 1] = __uint_as_float(pairs[i] & 0xffff0000);
  }
}

// Two numbers rounded to bfloat16, the first in the lower half.
DEVICE unsigned PackTwo(float low, float high) {
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

// Of what is read once: past the first cache. Volatile, or the compiler moves loads to their uses.
DEVICE uint4 LoadOnce(const uint4* from) {
  uint4 pack;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(pack.x), "=r"(pack.y), "=r"(pack.z), "=r"(pack.w)
               : "l"(from));
  return pack;
}

// 128 + v in bfloat16 is 0x4300 | v for v below 128. The pair i of a word's eight weights, 128
// added to each: the weights i and i + 4.
DEVICE unsigned PairOf(unsigned word, int i) { return (word >> 4 * i & 0x000f000f) | 0x43004300; }

// A thread's packs of four rows, and what belongs to them.
struct Batch {
  uint4 packs[kPacks][kRows];
  Half scales[kPacks][kRows];
  Byte zeros[kPacks][kRows];

  DEVICE void Load(const uint4* packed, const Half* all_scales, const Byte* all_zeros, int first) {
    if (first >= OUTPUTS) return;
#pragma unroll
    for (int i = 0; i < kPacks; ++i)
#pragma unroll
      for (int row = 0; row < kRows; ++row) {
        const int pack = min(i * kThreads + static_cast<int>(threadIdx.x), PACKS - 1);
        const long long column = min(first + row, OUTPUTS - 1);  // the last one again
        packs[i][row] = LoadOnce(packed + column * PACKS + pack);
        scales[i][row] = __ldg(all_scales + column * GROUPS + pack / 4);
        zeros[i][row] = __ldg(all_zeros + column * GROUPS + pack / 4);
      }
  }
};

// A thread's values of x, zeros past its end.
struct Values {
  float values[kPacks][32], sum[kPacks];

  DEVICE void Load(const uint4* x) {
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      const int pack = i * kThreads + threadIdx.x;
      sum[i] = 0;
#pragma unroll
      for (int word = 0; word < 4; ++word) {
        float eight[8];
        Unpack(pack < PACKS ? x[4 * pack + word] : uint4(), eight);
#pragma unroll
        for (int j = 0; j < 8; ++j) values[i][8 * word + j] = eight[j], sum[i] += eight[j];
      }
    }
  }
};

// Of one row.
DEVICE float Products(const Batch& batch, const Values& x, int row) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
    const uint4& pack = batch.packs[i][row];
    const unsigned words[] = {pack.x, pack.y, pack.z, pack.w};
    float part = 0;
#pragma unroll
    for (int word = 0; word < 4; ++word)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const unsigned pair = PairOf(words[word], j);
        part += x.values[i][8 * word + j] * __uint_as_float(pair << 16);
        part += x.values[i][8 * word + j + 4] * __uint_as_float(pair & 0xffff0000);
      }
    part -= (128.0f + batch.zeros[i][row]) * x.sum[i];
    sum += ToFloat(batch.scales[i][row]) * part;
  }
  return sum;
}

// Sums over a warp of four numbers a lane, by halves: lanes 8 i to 8 i + 7 get sum i.
DEVICE float SumsOfWarp(const float (&sums)[4]) {
  const bool upper = threadIdx.x & 16, odd = threadIdx.x & 8;
  float low = upper ? sums[2] : sums[0], high = upper ? sums[3] : sums[1];
  low += __shfl_xor_sync(~0u, upper ? sums[0] : sums[2], 16);
  high += __shfl_xor_sync(~0u, upper ? sums[1] : sums[3], 16);
  float sum = odd ? high : low;
  sum += __shfl_xor_sync(~0u, odd ? low : high, 8);
#pragma unroll
  for (int step = 4; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  return sum;
}

extern "C" __global__ void __launch_bounds__(kThreads, 4)
    multiply(const uint4* x, const uint4* packed, const Half* scales, const Byte* zeros,
             Half* out) {
  // By turns, so that one barrier is enough: whoever is a turn ahead writes the other one.
  __shared__ float parts[2][kWarps][kRows];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int first = blockIdx.x * kRows;
  Batch batch;
  batch.Load(packed, scales, zeros, first);
  Values values;
  values.Load(x + (long long)blockIdx.y * (FEATURES / 8));
  for (int turn = 0; first < OUTPUTS; turn ^= 1) {
    Batch ahead;
    ahead.Load(packed, scales, zeros, first + BLOCKS * kRows);
    float sums[kRows];
#pragma unroll
    for (int row = 0; row < kRows; ++row) sums[row] = Products(batch, values, row);
    const float sum = SumsOfWarp(sums);
    if (lane % 8 == 0) parts[turn][warp][lane / 8] = sum;
    __syncthreads();
    const int column = first + threadIdx.x;
    if (threadIdx.x < kRows && column < OUTPUTS) {
      float total = 0;
      for (int i = 0; i < kWarps; ++i) total += parts[turn][i][threadIdx.x];
      out[(long long)blockIdx.y * OUTPUTS + column] = PackTwo(total, 0);
    }
    batch = ahead;
    first += BLOCKS * kRows;
  }
}
