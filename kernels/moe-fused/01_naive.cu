// A mixture of experts, from the formula.
//
// Idea: none; the starting point. A thread an element of the hidden layer, which finds its expert
//   and its token, and multiplies with a row of gate and one of up; then a thread an element of the
//   results; then a thread eight elements of the sums over a token's experts.
// Prediction: 1% of the library: 412 GFLOP without tensor cores, every operand from the cache.
// Measured: not yet.
// Sizes: multiples of 8 features and of 8 hidden elements.
//! constant TOKENS = x.size(0)
//! constant FEATURES = x.size(1)
//! constant TOP = weights.size(1)
//! constant EXPERTS = gate.size(0)
//! constant HIDDEN = gate.size(1)
//! scratch  hidden bfloat16[TOKENS * TOP * HIDDEN]
//! scratch  results bfloat16[TOKENS * TOP * FEATURES]
//! launch expand grid=(ceil_div(HIDDEN, 16), ceil_div(TOKENS * TOP, 16)) block=(16, 16) args=(x, order, first, gate, up, hidden)
//! launch contract grid=(ceil_div(FEATURES, 16), ceil_div(TOKENS * TOP, 16)) block=(16, 16) args=(hidden, down, weights, order, first, results)
//! launch add grid=(ceil_div(TOKENS * FEATURES, 2048)) block=(256) args=(results, out)
#define DEVICE __device__ __forceinline__

using BFloat16 = unsigned short;  // its bits
constexpr int kRows = TOKENS * TOP;
static_assert(FEATURES % 8 == 0 && HIDDEN % 8 == 0);

// bfloat16 is the upper half of a float.
DEVICE float ToFloat(BFloat16 bits) { return __uint_as_float(static_cast<unsigned>(bits) << 16); }

// Two numbers rounded to bf16, the first in the lower half.
DEVICE unsigned Pack(float low, float high) {
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

DEVICE float Swiglu(float gate, float up) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(gate * -1.4426950409f));
  return __fdividef(gate, 1 + power) * up;
}

// The product of two rows.
DEVICE float Product(const BFloat16* a, const BFloat16* b, int count) {
  float sum = 0;
  for (int i = 0; i < count; i += 8) {
    const uint4 left = *reinterpret_cast<const uint4*>(a + i);
    const uint4 right = __ldg(reinterpret_cast<const uint4*>(b + i));
    const unsigned l[] = {left.x, left.y, left.z, left.w};
    const unsigned r[] = {right.x, right.y, right.z, right.w};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      sum += __uint_as_float(l[j] << 16) * __uint_as_float(r[j] << 16);
      sum += __uint_as_float(l[j] & 0xffff0000) * __uint_as_float(r[j] & 0xffff0000);
    }
  }
  return sum;
}

DEVICE int ExpertOf(int row, const int* first) {
  int expert = 0;
  while (__ldg(first + expert + 1) <= row) ++expert;
  return expert;
}

extern "C" __global__ void __launch_bounds__(256)
    expand(const BFloat16* x, const int* order, const int* first, const BFloat16* gate,
           const BFloat16* up, BFloat16* hidden) {
  const int row = blockIdx.y * 16 + threadIdx.x, column = blockIdx.x * 16 + threadIdx.y;
  if (row >= kRows || column >= HIDDEN) return;
  const BFloat16* const token = x + (long long)(__ldg(order + row) / TOP) * FEATURES;
  const long long at = ((long long)ExpertOf(row, first) * HIDDEN + column) * FEATURES;
  const float value =
      Swiglu(Product(token, gate + at, FEATURES), Product(token, up + at, FEATURES));
  hidden[(long long)row * HIDDEN + column] = Pack(value, 0);
}

extern "C" __global__ void __launch_bounds__(256)
    contract(const BFloat16* hidden, const BFloat16* down, const BFloat16* weights,
             const int* order, const int* first, BFloat16* results) {
  const int row = blockIdx.y * 16 + threadIdx.x, column = blockIdx.x * 16 + threadIdx.y;
  if (row >= kRows || column >= FEATURES) return;
  const long long at = ((long long)ExpertOf(row, first) * FEATURES + column) * HIDDEN;
  const int place = __ldg(order + row);
  const float value = Product(hidden + (long long)row * HIDDEN, down + at, HIDDEN);
  results[(long long)place * FEATURES + column] = Pack(value * ToFloat(weights[place]), 0);
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
