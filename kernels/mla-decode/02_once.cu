// Latent attention over a paged cache, rows read once for 16 heads.
//
// Idea: a block has 16 heads of a sequence, a warp each. Rows come into shared memory, 16 at a
//   time, and a warp reads a row into registers once: the same numbers are key and value. It takes
//   four rows a step, so that sums over its lanes wait less.
// Prediction: 60% of the library. DRAM is read once, but 16 warps read each row from shared memory,
//   with some 90 instructions a row and warp: 0.9 ms for 128 sequences of 4096 tokens by counting.
// Sizes: latents of 512 and 64 numbers of position; any heads, pages and lengths.
//! constant HEADS = q.size(1)
//! constant WIDTH = q.size(2)
//! constant LATENT = out.size(2)
//! constant PAGE = cache.size(1)
//! constant PAGES_MAX = page_table.size(1)
//! dim      batch = q.size(0)
//! launch   attention grid=(ceil_div(HEADS, 16), batch) block=(512) args=(q, cache, page_table, lengths, out)
#define DEVICE __device__ __forceinline__
static_assert(LATENT == 512 && WIDTH == 576);

constexpr int kWarps = 16, kThreads = 32 * kWarps;
constexpr int kTokens = 16, kAtOnce = 4;  // in a tile, in a step
constexpr int kChunks = WIDTH / 8;        // of 16 bytes, in a row
// Pairs of neighbours in a lane: lane i has pairs i, i + 32, ...
constexpr int kPairs = WIDTH / 64, kValuePairs = LATENT / 64;
// The scores times this are exponents of 2: 1 / sqrt(192) / ln(2).
constexpr float kScale = 0.104117546f;

DEVICE float MinusInfinity() { return __int_as_float(0xff800000); }

// The numbers of a pair; bfloat16 is the upper half of a float.
DEVICE float LowOf(unsigned pair) { return __uint_as_float(pair << 16); }
DEVICE float HighOf(unsigned pair) { return __uint_as_float(pair & 0xffff0000); }

// Two numbers rounded to bfloat16, the first in the lower half.
DEVICE unsigned PackTwo(float low, float high) {
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

DEVICE float PowerOfTwo(float value) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(value));
  return power;
}

// A lane's part of one head.
struct Head {
  float query[2 * kPairs], sums[2 * kValuePairs];
  float largest, total;

  // One row of shared memory, or more, of which the first `count` count.
  DEVICE void Add(const unsigned (*rows)[WIDTH / 2], int count) {
    const int lane = threadIdx.x % 32;
    unsigned pairs[kAtOnce][kPairs];
    float score[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      score[i] = 0;
#pragma unroll
      for (int j = 0; j < kPairs; ++j) {
        pairs[i][j] = rows[i][32 * j + lane];
        score[i] += query[2 * j] * LowOf(pairs[i][j]) + query[2 * j + 1] * HighOf(pairs[i][j]);
      }
    }
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) score[i] += __shfl_xor_sync(~0u, score[i], step);
    float now = largest;
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (i >= count) score[i] = MinusInfinity();
      now = fmaxf(now, score[i]);
    }
    const float shrink = PowerOfTwo(largest - now);  // 0 for the first rows
    largest = now;
    total *= shrink;
#pragma unroll
    for (int j = 0; j < 2 * kValuePairs; ++j) sums[j] *= shrink;
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const float power = PowerOfTwo(score[i] - now);
      total += power;
#pragma unroll
      for (int j = 0; j < kValuePairs; ++j) {
        sums[2 * j] += power * LowOf(pairs[i][j]);
        sums[2 * j + 1] += power * HighOf(pairs[i][j]);
      }
    }
  }
};

extern "C" __global__ void __launch_bounds__(kThreads)
    attention(const unsigned* q, const uint4* cache, const int* page_table, const int* lengths,
              unsigned* out) {
  __shared__ __align__(16) unsigned rows[kTokens][WIDTH / 2];
  const int lane = threadIdx.x % 32, sequence = blockIdx.y;
  const int head = blockIdx.x * kWarps + threadIdx.x / 32;
  const int length = lengths[sequence];
  const int* const table = page_table + (long long)sequence * PAGES_MAX;
  const long long row = (long long)sequence * HEADS + min(head, HEADS - 1);
  Head mine = {};
  mine.largest = MinusInfinity();
#pragma unroll
  for (int j = 0; j < kPairs; ++j) {
    const unsigned pair = q[row * (WIDTH / 2) + 32 * j + lane];
    mine.query[2 * j] = LowOf(pair) * kScale, mine.query[2 * j + 1] = HighOf(pair) * kScale;
  }
  for (int start = 0; start < length; start += kTokens) {
    __syncthreads();  // the rows before are no longer read
    for (int i = threadIdx.x; i < kTokens * kChunks; i += kThreads) {
      const int token = start + i / kChunks;
      uint4 chunk = {0, 0, 0, 0};
      if (token < length) {
        const long long place = (long long)table[token / PAGE] * PAGE + token % PAGE;
        chunk = cache[place * kChunks + i % kChunks];
      }
      reinterpret_cast<uint4*>(rows)[i] = chunk;
    }
    __syncthreads();
    for (int i = 0; i < kTokens && start + i < length; i += kAtOnce)
      mine.Add(rows + i, length - start - i);
  }
  if (head >= HEADS) return;
#pragma unroll
  for (int j = 0; j < kValuePairs; ++j)
    out[row * (LATENT / 2) + 32 * j + lane] =
        length > 0 ? PackTwo(mine.sums[2 * j] / mine.total, mine.sums[2 * j + 1] / mine.total) : 0;
}
