// Scale, mask and softmax of a row while it lies in a small buffer.
//
// Idea: PyTorch writes the scaled scores, the inverted mask and the filled scores before its
// softmax begins. Here a row is scaled and masked into a buffer in the L1 cache, turned into
// exponentials there, and written once. A key that is not kept is minus infinity, whose exponential
// is zero.
// expected: faster at small
//! flags -fno-trapping-math
#include <assay/kernel.h>

#include <limits>
#include <vector>

namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif

typedef float Vector __attribute__((vector_size(4 * kLanes)));
typedef int32_t IntVector __attribute__((vector_size(4 * kLanes)));

Vector Load(const float* from) {
  Vector value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

void Store(float* to, Vector value) { __builtin_memcpy(to, &value, sizeof value); }

Vector Maximum(Vector a, Vector b) { return b > a ? b : a; }

// exp(x) for x <= 0, to about 1 unit in the last place: x = n ln 2 + r with |r| <= ln 2 / 2, exp(r)
// by a polynomial, scaled by 2^n. Below the smallest normal float: zero. NaN stays.
Vector Exponential(Vector x) {
  constexpr float kLowest = -87.3365f;
  constexpr float kRound =
      12582912.0f;  // 1.5 * 2^23: adding it leaves a whole number in the low bits
  const Vector clamped = x < kLowest ? Vector{} + kLowest : x;
  const Vector shifted = clamped * 1.44269504f + kRound;
  const Vector n = shifted - kRound;
  // ln 2 in two parts: the first has few bits, so that its product with n is exact.
  const Vector r = clamped - n * 0.693359375f + n * 2.12194440e-4f;
  Vector p = r * 1.3888889e-3f + 8.3333333e-3f;
  p = p * r + 4.1666667e-2f;
  p = p * r + 1.6666667e-1f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const IntVector scale = (reinterpret_cast<IntVector>(shifted) + 127) << 23;
  return x < kLowest ? Vector{} : p * reinterpret_cast<Vector>(scale);
}

// A loop without branches, which the compiler vectorises.
void ScaleAndMask(const float* __restrict__ scores, const bool* __restrict__ keep, float factor,
                  int64_t keys, float* __restrict__ to) {
  const auto* kept = reinterpret_cast<const uint8_t*>(keep);
  for (int64_t key = 0; key < keys; ++key) {
    const float scaled = scores[key] * factor;
    to[key] = kept[key] != 0 ? scaled : -std::numeric_limits<float>::infinity();
  }
}

// columns is a multiple of kLanes here and below: the buffer is filled up with minus infinity.
float Largest(const float* x, int64_t columns) {
  Vector largest = Vector{} - std::numeric_limits<float>::infinity();
  for (int64_t column = 0; column < columns; column += kLanes) {
    largest = Maximum(largest, Load(x + column));
  }
  float result = largest[0];
  for (int lane = 1; lane < kLanes; ++lane)
    result = largest[lane] > result ? largest[lane] : result;
  return result;
}

// Replaces x by exp(x - largest) and returns the sum.
float Exponentials(float* x, float largest, int64_t columns) {
  Vector sums = {};
  for (int64_t column = 0; column < columns; column += kLanes) {
    const Vector value = Exponential(Load(x + column) - largest);
    Store(x + column, value);
    sums += value;
  }
  float total = 0;
  for (int lane = 0; lane < kLanes; ++lane) total += sums[lane];
  return total;
}

}  // namespace

ASSAY_KERNEL(assay::Tensor<const float, 4> scores, assay::Tensor<const bool, 4> keep,
             assay::Tensor<const float, 3> scale, assay::Tensor<float, 4> out) {
  constexpr float kNothing = -std::numeric_limits<float>::infinity();
  const int64_t heads = scores.size(1);
  const int64_t queries = scores.size(2);
  const int64_t keys = scores.size(3);
  const int64_t whole = (keys + kLanes - 1) / kLanes * kLanes;
  static std::vector<float> scratch;
  scratch.assign(static_cast<size_t>(whole), kNothing);
  float* __restrict__ buffer = scratch.data();
  for (int64_t head = 0; head < scores.size(0) * heads; ++head) {
    const float factor = scale.data()[head % heads];
    for (int64_t query = 0; query < queries; ++query) {
      const float* from = scores.data() + (head * queries + query) * keys;
      const bool* kept = keep.data() + (head / heads * queries + query) * keys;
      float* __restrict__ to = out.data() + (head * queries + query) * keys;
      ScaleAndMask(from, kept, factor, keys, buffer);
      for (int64_t key = keys; key < whole; ++key) buffer[key] = kNothing;
      const float sum = Exponentials(buffer, Largest(buffer, whole), whole);
      for (int64_t key = 0; key < keys; ++key) to[key] = buffer[key] / sum;
    }
  }
}
