// One step of decoding: queries and the new key are turned by their position, and meet the cache.
//
// Idea: none; the starting point. A block a head of queries: a thread a token for the scores, then
//   a thread an element for the weighted values.
// Sizes: one row; even heads of up to 256; scores of all tokens fit into shared memory.
//! constant HEAD_DIM = keys.size(2)
//! constant KV_HEADS = keys.size(1)
//! constant CONTEXT = keys.size(0)
//! constant HEADS = qkv.size(1) / HEAD_DIM - 2 * KV_HEADS
//! launch   attend grid=(HEADS) block=(256) shared=4*(CONTEXT+1) args=(qkv, cosine, sine, keys, values, out)
#define DEVICE __device__ __forceinline__

using Half = unsigned short;  // the bits of a bfloat16

constexpr int kTokens = CONTEXT + 1;  // the last one is new
constexpr int kHalf = HEAD_DIM / 2;
static_assert(HEAD_DIM % 2 == 0 && HEAD_DIM <= 256);

// bfloat16 is the upper half of a float.
DEVICE float ToFloat(Half bits) { return __uint_as_float(static_cast<unsigned>(bits) << 16); }

// A number rounded to bfloat16.
DEVICE Half ToHalf(float value) {
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(0.0f), "f"(value));
  return pair;
}

// Element i of a head's row, turned: element i and element i + HEAD_DIM / 2 by one angle.
DEVICE float Turned(const Half* row, const float* cosine, const float* sine, int i) {
  if (i < kHalf) return ToFloat(row[i]) * cosine[i] - ToFloat(row[i + kHalf]) * sine[i];
  return ToFloat(row[i]) * cosine[i - kHalf] + ToFloat(row[i - kHalf]) * sine[i - kHalf];
}

// The maximum (or the sum) over the threads of a block of 256.
template <bool maximum>
DEVICE float OverBlock(float value) {
  __shared__ float of_thread[256];
  of_thread[threadIdx.x] = value;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      const float other = of_thread[threadIdx.x + half];
      of_thread[threadIdx.x] =
          maximum ? fmaxf(of_thread[threadIdx.x], other) : of_thread[threadIdx.x] + other;
    }
    __syncthreads();
  }
  value = of_thread[0];
  __syncthreads();
  return value;
}

extern "C" __global__ void __launch_bounds__(256)
    attend(const Half* qkv, const float* cosine, const float* sine, const Half* keys,
           const Half* values, Half* out) {
  extern __shared__ float scores[];  // of all tokens
  __shared__ float query[HEAD_DIM], new_key[HEAD_DIM];
  const int head = blockIdx.x, kv_head = head / (HEADS / KV_HEADS);
  const Half* const key_row = qkv + (HEADS + kv_head) * HEAD_DIM;
  const Half* const value_row = key_row + KV_HEADS * HEAD_DIM;
  for (int i = threadIdx.x; i < HEAD_DIM; i += 256) {
    query[i] = Turned(qkv + head * HEAD_DIM, cosine, sine, i);
    new_key[i] = Turned(key_row, cosine, sine, i);
  }
  __syncthreads();
  float largest = __int_as_float(0xff800000), total = 0;
  for (int token = threadIdx.x; token < kTokens; token += 256) {
    const Half* const key = keys + ((long long)token * KV_HEADS + kv_head) * HEAD_DIM;
    float score = 0;
    for (int i = 0; i < HEAD_DIM; ++i)
      score += query[i] * (token < CONTEXT ? ToFloat(key[i]) : new_key[i]);
    scores[token] = score * rsqrtf(HEAD_DIM);
    largest = fmaxf(largest, scores[token]);
  }
  largest = OverBlock<true>(largest);
  for (int token = threadIdx.x; token < kTokens; token += 256) {
    scores[token] = __expf(scores[token] - largest);
    total += scores[token];
  }
  total = OverBlock<false>(total);  // with the barrier for the scores
  for (int i = threadIdx.x; i < HEAD_DIM; i += 256) {
    float sum = scores[CONTEXT] * ToFloat(value_row[i]);
    for (int token = 0; token < CONTEXT; ++token)
      sum += scores[token] *
             ToFloat(values[((long long)token * KV_HEADS + kv_head) * HEAD_DIM + i]);
    out[head * HEAD_DIM + i] = ToHalf(sum / total);
  }
}
