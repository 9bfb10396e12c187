// A matrix times a vector in NVFP4, x in registers.
//
// Idea: a thread keeps to its 32 places of every row, so that x stays in registers and shared
//   memory is not read. A block has all of a row, four rows at a time, and asks for the next four
//   before these are used; blocks stay. Sums of threads meet in shared memory once for four rows.
// Prediction: 10000% of the library, 85% of the speed of a copy.
// Sizes: any that the problem has; beyond 16384 features a thread has more packs, and spills.
//! constant ROWS = packed.size(1)
//! constant FEATURES = scales.size(2) * 16
//! constant PACKS = FEATURES / 32
//! dim      batch = packed.size(0)
//! constant THREADS = min(512, ceil_div(PACKS, 32) * 32)
//! constant BLOCKS = max(135168 / THREADS / batch, 1)
//! launch   multiply grid=(BLOCKS, batch) block=(THREADS) args=(packed, scales, x_packed, x_scales, factor, out)
#define DEVICE __device__ __forceinline__

using Half = unsigned short;  // the bits of a bfloat16
constexpr int kWarps = THREADS / 32, kThreads = THREADS;
constexpr int kRows = 4;                                   // at a time
constexpr int kPacks = (PACKS + kThreads - 1) / kThreads;  // of a row, in a thread
constexpr float kUnit = 0x1p12f;                           // products are smaller by this

// bfloat16 is the upper half of a float.
DEVICE float ToFloat(Half bits) { return __uint_as_float(static_cast<unsigned>(bits) << 16); }

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

// sum + a * b of pairs of halves, subnormal numbers kept.
DEVICE unsigned MultiplyAdd(unsigned a, unsigned b, unsigned sum) {
  asm("fma.rn.f16x2 %0, %1, %2, %0;" : "+r"(sum) : "r"(a), "r"(b));
  return sum;
}

// The sum of a pair of halves.
DEVICE float SumOf(unsigned pair) {
  float low, high;
  asm("{.reg .b16 low, high; mov.b32 {low, high}, %2; cvt.f32.f16 %0, low; cvt.f32.f16 %1, high;}"
      : "=f"(low), "=f"(high)
      : "r"(pair));
  return low + high;
}

// Two neighbouring e4m3 as a pair of halves.
DEVICE unsigned HalvesOf(unsigned two) {
  unsigned pair;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"(static_cast<unsigned short>(two)));
  return pair;
}

// Two neighbouring scales.
DEVICE float2 ScalesOf(unsigned two) {
  float2 scales;
  asm("{.reg .b16 low, high; mov.b32 {low, high}, %2; cvt.f32.f16 %0, low; cvt.f32.f16 %1, high;}"
      : "=f"(scales.x), "=f"(scales.y)
      : "r"(HalvesOf(two)));
  return scales;
}

// A word's eight numbers as pairs of halves, in the order 0 and 2, 4 and 6, 1 and 3, 5 and 7, times
// 2^-6: each with its sign in a byte becomes e4m3, which an instruction converts.
DEVICE void Unpack(unsigned word, unsigned (&pairs)[4]) {
  const unsigned even = (word << 4 & 0x80808080) | (word << 2 & 0x1c1c1c1c);
  const unsigned odd = (word & 0x80808080) | (word >> 2 & 0x1c1c1c1c);
  pairs[0] = HalvesOf(even & 0xffff), pairs[1] = HalvesOf(even >> 16);
  pairs[2] = HalvesOf(odd & 0xffff), pairs[3] = HalvesOf(odd >> 16);
}

// A thread's numbers of x as pairs, zeros past its end.
struct Values {
  unsigned pairs[kPacks][4][4];
  float2 scales[kPacks];

  DEVICE void Load(const uint4* x_packed, const Half* x_scales) {
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      const int pack = i * kThreads + threadIdx.x;
      const uint4 four = pack < PACKS ? x_packed[pack] : uint4();
      const unsigned words[] = {four.x, four.y, four.z, four.w};
#pragma unroll
      for (int j = 0; j < 4; ++j) Unpack(words[j], pairs[i][j]);
      const float2 two = ScalesOf(pack < PACKS ? x_scales[pack] : 0);
      scales[i] = make_float2(two.x * kUnit, two.y * kUnit);
    }
  }
};

// A thread's packs of four rows, and their scales.
struct Batch {
  uint4 packs[kPacks][kRows];
  Half scales[kPacks][kRows];

  DEVICE void Load(const uint4* packed, const Half* all_scales, int first) {
    if (first >= ROWS) return;
#pragma unroll
    for (int i = 0; i < kPacks; ++i)
#pragma unroll
      for (int row = 0; row < kRows; ++row) {
        const int pack = min(i * kThreads + static_cast<int>(threadIdx.x), PACKS - 1);
        const long long at = (long long)min(first + row, ROWS - 1) * PACKS + pack;
        packs[i][row] = LoadOnce(packed + at);
        scales[i][row] = __ldg(all_scales + at);
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
    unsigned parts[2] = {};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      unsigned pairs[4];
      Unpack(words[j], pairs);
#pragma unroll
      for (int k = 0; k < 4; ++k)
        parts[j / 2] = MultiplyAdd(pairs[k], x.pairs[i][j][k], parts[j / 2]);
    }
    const float2 its = ScalesOf(batch.scales[i][row]);
    sum += SumOf(parts[0]) * (its.x * x.scales[i].x) + SumOf(parts[1]) * (its.y * x.scales[i].y);
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

extern "C" __global__ void __launch_bounds__(kThreads, 1024 / kThreads)
    multiply(const uint4* packed, const Half* scales, const uint4* x_packed, const Half* x_scales,
             const Half* factor, Half* out) {
  // By turns, so that one barrier is enough: whoever is a turn ahead writes the other one.
  __shared__ float parts[2][kWarps][kRows];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, batch_of = blockIdx.y;
  const long long at = (long long)batch_of * ROWS;
  int first = blockIdx.x * kRows;
  Batch batch;
  batch.Load(packed + at * PACKS, scales + at * PACKS, first);
  Values x;
  x.Load(x_packed + batch_of * PACKS, x_scales + batch_of * PACKS);
  const float scale = ToFloat(factor[batch_of]);
  for (int turn = 0; first < ROWS; turn ^= 1) {
    Batch ahead;
    ahead.Load(packed + at * PACKS, scales + at * PACKS, first + BLOCKS * kRows);
    float sums[kRows];
#pragma unroll
    for (int row = 0; row < kRows; ++row) sums[row] = Products(batch, x, row);
    const float sum = SumsOfWarp(sums);
    if (lane % 8 == 0) parts[turn][warp][lane / 8] = sum;
    __syncthreads();
    const int row = first + threadIdx.x;
    if (threadIdx.x < kRows && row < ROWS) {
      float total = 0;
      for (int i = 0; i < kWarps; ++i) total += parts[turn][i][threadIdx.x];
      out[at + row] = PackTwo(total * scale, 0);
    }
    batch = ahead;
    first += BLOCKS * kRows;
  }
}
