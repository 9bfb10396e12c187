// Rows of queries, keys and values become heads: queries and keys are turned by their positions, and
// each head of queries gets a copy of the keys and values of its group.
// Sizes: even heads.
//! constant ROWS = qkv.size(0)
//! constant HEADS = query.size(1)
//! constant HEAD_DIM = query.size(3)
//! constant KV_HEADS = (qkv.size(1) / HEAD_DIM - HEADS) / 2
//! launch   split grid=(ROWS) block=(256) args=(qkv, cosine, sine, query, key, value)

using Half = unsigned short;  // the bits of a bfloat16

// bfloat16 is the upper half of a float.
__device__ float ToFloat(Half bits) { return __uint_as_float(static_cast<unsigned>(bits) << 16); }

// A number rounded to bfloat16.
__device__ Half ToHalf(float value) {
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(0.0f), "f"(value));
  return pair;
}

constexpr int kHalf = HEAD_DIM / 2;
static_assert(HEAD_DIM % 2 == 0);

// Writes elements i and i + kHalf of a head's row, turned by the angle that they have.
__device__ void Turn(Half* to, const Half* from, float cosine, float sine, int i) {
  const float a = ToFloat(from[i]), b = ToFloat(from[i + kHalf]);
  to[i] = ToHalf(a * cosine - b * sine);
  to[i + kHalf] = ToHalf(b * cosine + a * sine);
}

extern "C" __global__ void __launch_bounds__(256)
    split(const Half* qkv, const float* cosine, const float* sine, Half* query, Half* key,
          Half* value) {
  const long long row = blockIdx.x;
  qkv += row * (HEADS + 2 * KV_HEADS) * HEAD_DIM;
  for (int at = threadIdx.x; at < HEADS * kHalf; at += 256) {
    const int head = at / kHalf, i = at % kHalf, kv_head = head / (HEADS / KV_HEADS);
    const float c = cosine[row * kHalf + i], s = sine[row * kHalf + i];
    const long long to = (head * (long long)ROWS + row) * HEAD_DIM;
    Turn(query + to, qkv + head * HEAD_DIM, c, s, i);
    Turn(key + to, qkv + (HEADS + kv_head) * HEAD_DIM, c, s, i);
    const Half* const v = qkv + (HEADS + KV_HEADS + kv_head) * HEAD_DIM;
    value[to + i] = v[i];
    value[to + i + kHalf] = v[i + kHalf];
  }
}
