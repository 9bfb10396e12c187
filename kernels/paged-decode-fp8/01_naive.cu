// Attention over a paged cache of float8, a block for each head of queries.
//
// Idea: none; the starting point, as in paged-decode. A block takes 128 tokens at a time: each
//   thread multiplies the query with a key of its own, byte by byte, the block turns scores into
//   powers of the distance to the largest so far (the online softmax), and then each thread adds up
//   a column of the values. A head's scales meet scores and results, never a number of the cache.
// Prediction: 60% of the library: rung 1 in bf16 had 26%, of a library that read twice as much and
//   did not have to turn bytes into numbers.
// Measured: not yet.
// Sizes: heads of 128; any groups, pages and lengths.
//! constant HEADS = q.size(1)
//! constant HEAD_DIM = q.size(2)
//! constant PAGE = k_cache.size(1)
//! constant KV_HEADS = k_cache.size(2)
//! constant PAGES_MAX = page_table.size(1)
//! dim      batch = q.size(0)
//! launch   attention grid=(HEADS, batch) block=(128) args=(q, k_cache, v_cache, k_scales, v_scales, page_table, lengths, out)
#define DEVICE __device__ __forceinline__
static_assert(HEAD_DIM == 128);

using Half = unsigned short;  // the bits of a bfloat16
using Code = unsigned char;   // the bits of a number of e4m3
constexpr int kThreads = 128, kWarps = kThreads / 32;
constexpr int kGroup = HEADS / KV_HEADS;
// log2(e) / sqrt(HEAD_DIM): a score times this is an exponent of 2.
constexpr float kScale = 1.4426950409f * 0.0883883476f;

DEVICE float MinusInfinity() { return __int_as_float(0xff800000); }

// bfloat16 is the upper half of a float.
DEVICE float ToFloat(Half bits) { return __uint_as_float(static_cast<unsigned>(bits) << 16); }

// Every number of e4m3 is one of float16, and that one of float.
DEVICE float NumberOf(Code code) {
  float number;
  asm("{.reg .b32 pair; .reg .b16 low, high; cvt.rn.f16x2.e4m3x2 pair, %1; "
      "mov.b32 {low, high}, pair; cvt.f32.f16 %0, low;}"
      : "=f"(number)
      : "h"(static_cast<unsigned short>(code)));
  return number;
}

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

// The largest value of the block, in every thread. Between two calls there is a barrier.
DEVICE float MaximumOfBlock(float value) {
  __shared__ float of_warp[kWarps];
  for (int step = 16; step > 0; step /= 2) value = fmaxf(value, __shfl_xor_sync(~0u, value, step));
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  for (int warp = 0; warp < kWarps; ++warp) value = fmaxf(value, of_warp[warp]);
  return value;
}

// The same for the sum; called once.
DEVICE float SumOfBlock(float value) {
  __shared__ float of_warp[kWarps];
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  value = 0;
  for (int warp = 0; warp < kWarps; ++warp) value += of_warp[warp];
  return value;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    attention(const Half* q, const Code* k_cache, const Code* v_cache, const float* k_scales,
              const float* v_scales, const int* page_table, const int* lengths, Half* out) {
  __shared__ float query[HEAD_DIM], weight[kThreads];
  __shared__ long long place[kThreads];  // of a token's row, in either cache
  const int head = blockIdx.x, sequence = blockIdx.y, thread = threadIdx.x;
  const int kv_head = head / kGroup, length = lengths[sequence];
  const int* const table = page_table + (long long)sequence * PAGES_MAX;
  const long long at = ((long long)sequence * HEADS + head) * HEAD_DIM + thread;
  query[thread] = ToFloat(q[at]);
  const float unit = k_scales[kv_head] * kScale;
  __syncthreads();

  float largest = MinusInfinity(), total = 0, sum = 0;  // the last one of a column
  for (int start = 0; start < length; start += kThreads) {
    const int token = start + thread;
    float score = MinusInfinity();
    if (token < length) {
      const long long row = (long long)table[token / PAGE] * PAGE + token % PAGE;
      place[thread] = (row * KV_HEADS + kv_head) * HEAD_DIM;
      const Code* const key = k_cache + place[thread];
      score = 0;
      for (int i = 0; i < HEAD_DIM; ++i) score += query[i] * NumberOf(key[i]);
      score *= unit;
    }
    const float now = fmaxf(largest, MaximumOfBlock(score));
    const float shrink = PowerOfTwo(largest - now);
    weight[thread] = PowerOfTwo(score - now);
    total = total * shrink + weight[thread];
    sum *= shrink;
    largest = now;
    __syncthreads();
    const int count = min(kThreads, length - start);
    for (int i = 0; i < count; ++i) sum += weight[i] * NumberOf(v_cache[place[i] + thread]);
    __syncthreads();  // before weights and places are written again
  }
  total = SumOfBlock(total);
  out[at] = PackTwo(length > 0 ? sum / total * v_scales[kv_head] : 0, 0);
}
