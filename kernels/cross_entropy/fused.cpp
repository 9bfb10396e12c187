// Cross entropy of each row: the logarithm of the sum of exponentials, and nothing that is stored.
//
// Idea: PyTorch writes the logarithm of the softmax of the whole matrix and then reads one element
// a row of it. Here the matrix is only read: a row's largest value first, which brings the row into
// the L1 cache, then the sum of its exponentials by a polynomial on whole vectors.
// expected: faster at small
#include <assay/kernel.h>

#include <cmath>
#include <limits>

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

// The last elements of a row, fewer than a vector; the lanes behind them are minus infinity, whose
// exponential adds nothing.
Vector LoadTail(const float* from, int64_t count) {
  float lanes[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    lanes[lane] = lane < count ? from[lane] : -std::numeric_limits<float>::infinity();
  }
  return Load(lanes);
}

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

float Largest(const float* x, int64_t columns) {
  Vector largest[4];
  for (Vector& part : largest) part = Vector{} - std::numeric_limits<float>::infinity();
  int64_t column = 0;
  for (; column + 4 * kLanes <= columns; column += 4 * kLanes) {
    for (int i = 0; i < 4; ++i) largest[i] = Maximum(largest[i], Load(x + column + i * kLanes));
  }
  for (; column + kLanes <= columns; column += kLanes) {
    largest[0] = Maximum(largest[0], Load(x + column));
  }
  if (column < columns) largest[0] = Maximum(largest[0], LoadTail(x + column, columns - column));
  const Vector all = Maximum(Maximum(largest[0], largest[1]), Maximum(largest[2], largest[3]));
  float result = all[0];
  for (int lane = 1; lane < kLanes; ++lane) result = all[lane] > result ? all[lane] : result;
  return result;
}

// The sum of exp(x - largest). Reads ahead in `next`, the row that follows.
double SumOfExponentials(const float* x, float largest, int64_t columns, const float* next) {
  Vector sums[2] = {};
  int64_t column = 0;
  for (; column + 2 * kLanes <= columns; column += 2 * kLanes) {
    for (int line = 0; line < 2 * kLanes; line += 16) __builtin_prefetch(next + column + line);
    for (int i = 0; i < 2; ++i) {
      sums[i] += Exponential(Load(x + column + i * kLanes) - largest);
    }
  }
  for (; column + kLanes <= columns; column += kLanes) {
    sums[0] += Exponential(Load(x + column) - largest);
  }
  if (column < columns) {
    sums[1] += Exponential(LoadTail(x + column, columns - column) - largest);
  }
  const Vector all = sums[0] + sums[1];
  double total = 0;
  for (int lane = 0; lane < kLanes; ++lane) total += static_cast<double>(all[lane]);
  return total;
}

}  // namespace

ASSAY_KERNEL(assay::Tensor<const float, 2> logits, assay::Tensor<const int64_t, 1> classes,
             assay::Tensor<float, 1> out) {
  const int64_t rows = logits.size(0);
  const int64_t columns = logits.size(1);
  for (int64_t row = 0; row < rows; ++row) {
    const float* from = logits.data() + row * columns;
    const float* next = row + 1 < rows ? from + columns : from;
    const float largest = Largest(from, columns);
    const double sum = SumOfExponentials(from, largest, columns, next);
    const double below = static_cast<double>(largest) - static_cast<double>(from[classes(row)]);
    out(row) = static_cast<float>(std::log(sum) + below);
  }
}
