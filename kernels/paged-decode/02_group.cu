// Attention over a paged cache, a block for each head of keys and values.
//
// Idea: the heads of queries that share keys and values are one block's work: a key that a thread
//   has read is multiplied with all of their queries, and a value is added to all of their sums.
// Prediction: 100% of the library: a quarter of the reads, still 2 bytes at a time.
// Measured: on an H100 1.08 ms, 57.7% of the library, 16.4% of the speed of a copy (32 sequences
//   of 4096 tokens).
// Sizes: heads of 64 or 128; any groups, pages and lengths.
//! constant HEADS = q.size(1)
//! constant HEAD_DIM = q.size(2)
//! constant PAGE = k_cache.size(1)
//! constant KV_HEADS = k_cache.size(2)
//! constant PAGES_MAX = page_table.size(1)
//! dim      batch = q.size(0)
//! launch   attention grid=(KV_HEADS, batch) block=(128) args=(q, k_cache, v_cache, page_table, lengths, out)
#define DEVICE __device__ __forceinline__
static_assert(HEAD_DIM == 64 || HEAD_DIM == 128);

using Half = unsigned short;  // the bits of a bfloat16
constexpr int kThreads = 128, kWarps = kThreads / 32;
constexpr int kGroup = HEADS / KV_HEADS;
// The scores times this are exponents of 2.
constexpr float kScale = 1.4426950409f * (HEAD_DIM == 64 ? 0.125f : 0.0883883476f);

DEVICE float MinusInfinity() { return __int_as_float(0xff800000); }

// bfloat16 is the upper half of a float.
DEVICE float ToFloat(Half bits) { return __uint_as_float(static_cast<unsigned>(bits) << 16); }

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

// A number for each head of the group.
using Group = float[kGroup];

// Of each, the largest value of the block, in every thread. Between two calls there is a barrier.
DEVICE void MaximaOfBlock(Group& values) {
  __shared__ float of_warp[kGroup][kWarps];
  for (int j = 0; j < kGroup; ++j) {
    for (int step = 16; step > 0; step /= 2)
      values[j] = fmaxf(values[j], __shfl_xor_sync(~0u, values[j], step));
    if (threadIdx.x % 32 == 0) of_warp[j][threadIdx.x / 32] = values[j];
  }
  __syncthreads();
  for (int j = 0; j < kGroup; ++j)
    for (int warp = 0; warp < kWarps; ++warp) values[j] = fmaxf(values[j], of_warp[j][warp]);
}

// The same for sums; called once.
DEVICE void SumsOfBlock(Group& values) {
  __shared__ float of_warp[kGroup][kWarps];
  for (int j = 0; j < kGroup; ++j) {
    for (int step = 16; step > 0; step /= 2) values[j] += __shfl_xor_sync(~0u, values[j], step);
    if (threadIdx.x % 32 == 0) of_warp[j][threadIdx.x / 32] = values[j];
  }
  __syncthreads();
  for (int j = 0; j < kGroup; ++j) {
    values[j] = 0;
    for (int warp = 0; warp < kWarps; ++warp) values[j] += of_warp[j][warp];
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    attention(const Half* q, const Half* k_cache, const Half* v_cache, const int* page_table,
              const int* lengths, Half* out) {
  __shared__ float query[kGroup][HEAD_DIM], weight[kGroup][kThreads];
  __shared__ long long place[kThreads];  // of a token's row, in either cache
  const int kv_head = blockIdx.x, sequence = blockIdx.y, thread = threadIdx.x;
  const int length = lengths[sequence];
  const int* const table = page_table + (long long)sequence * PAGES_MAX;
  const long long at = ((long long)sequence * HEADS + kv_head * kGroup) * HEAD_DIM + thread;
  if (thread < HEAD_DIM)
    for (int j = 0; j < kGroup; ++j) query[j][thread] = ToFloat(q[at + j * HEAD_DIM]) * kScale;
  __syncthreads();

  Group largest, total = {}, sum = {};  // the last ones of a column
  for (int j = 0; j < kGroup; ++j) largest[j] = MinusInfinity();
  for (int start = 0; start < length; start += kThreads) {
    const int token = start + thread;
    Group score = {};
    if (token < length) {
      const long long row = (long long)table[token / PAGE] * PAGE + token % PAGE;
      place[thread] = (row * KV_HEADS + kv_head) * HEAD_DIM;
      const Half* const key = k_cache + place[thread];
      for (int i = 0; i < HEAD_DIM; ++i) {
        const float element = ToFloat(key[i]);
        for (int j = 0; j < kGroup; ++j) score[j] += query[j][i] * element;
      }
    } else {
      for (int j = 0; j < kGroup; ++j) score[j] = MinusInfinity();
    }
    Group now;
    for (int j = 0; j < kGroup; ++j) now[j] = fmaxf(largest[j], score[j]);
    MaximaOfBlock(now);
    for (int j = 0; j < kGroup; ++j) {
      const float shrink = PowerOfTwo(largest[j] - now[j]);
      weight[j][thread] = PowerOfTwo(score[j] - now[j]);
      total[j] = total[j] * shrink + weight[j][thread];
      sum[j] *= shrink;
      largest[j] = now[j];
    }
    __syncthreads();
    const int count = min(kThreads, length - start);
    if (thread < HEAD_DIM)
      for (int i = 0; i < count; ++i) {
        const float element = ToFloat(v_cache[place[i] + thread]);
        for (int j = 0; j < kGroup; ++j) sum[j] += weight[j][i] * element;
      }
    __syncthreads();  // before weights and places are written again
  }
  SumsOfBlock(total);
  if (thread < HEAD_DIM)
    for (int j = 0; j < kGroup; ++j)
      out[at + j * HEAD_DIM] = PackTwo(length > 0 ? sum[j] / total[j] : 0, 0);
}
