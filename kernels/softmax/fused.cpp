// Softmax, one visit to memory a row: read once, kept in cache while it is worked on, written once.
//
// Idea: the matrix is far larger than the caches and a row is not. (1) The row's largest value;
// this pass brings the row into the L1 cache, and asks for the next one meanwhile. (2)
// Exponentials, by a polynomial on whole vectors, into a small buffer, with their sum. (3) Scaled
// into the output by stores that pass the caches by, so that no line of it is read first.
// PyTorch's three passes go through the output.
// expected: faster at small
#include <assay/kernel.h>

#include <cmath>
#include <limits>

#if defined(__AVX__)
#include <immintrin.h>
#endif

namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif
constexpr int64_t kBufferColumns = 8192;  // 32 KiB: longer rows are worked on in the output itself

typedef float Vector __attribute__((vector_size(4 * kLanes)));
typedef int32_t IntVector __attribute__((vector_size(4 * kLanes)));

Vector Load(const float* from) {
  Vector value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

void Store(float* to, Vector value) { __builtin_memcpy(to, &value, sizeof value); }

// Past the caches where the machine has such a store and the address allows it.
void StoreOnce(float* to, Vector value, bool is_aligned) {
#if defined(__AVX512F__)
  if (is_aligned) return _mm512_stream_ps(to, reinterpret_cast<__m512>(value));
#elif defined(__AVX__)
  if (is_aligned) return _mm256_stream_ps(to, reinterpret_cast<__m256>(value));
#endif
  (void)is_aligned;
  Store(to, value);
}

// The last elements of a row, fewer than a vector; the lanes behind them are minus infinity, which
// adds nothing.
Vector LoadTail(const float* from, int64_t count) {
  float lanes[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    lanes[lane] = lane < count ? from[lane] : -std::numeric_limits<float>::infinity();
  }
  return Load(lanes);
}

Vector Maximum(Vector a, Vector b) { return b > a ? b : a; }

// exp(x) for x <= 0, to about 1 unit in the last place. x = n ln 2 + r with |r| <= ln 2 / 2; exp(r)
// by a polynomial of degree 6 (its error is below 1e-8 on that interval), scaled by 2^n. Below the
// smallest normal float: zero. NaN stays.
Vector Exponential(Vector x) {
  constexpr float kLowest = -87.3365f;
  constexpr float kRound =
      12582912.0f;  // 1.5 * 2^23: adding it rounds to a whole number, left in the low bits
  const Vector clamped = x < kLowest ? Vector{} + kLowest : x;
  const Vector shifted = clamped * 1.44269504f + kRound;
  const Vector n = shifted - kRound;
  Vector r =
      clamped -
      n * 0.693359375f;  // ln 2 in two parts: the first has few bits, so that the product is exact
  r = r + n * 2.12194440e-4f;
  Vector p = r * 1.3888889e-3f + 8.3333333e-3f;
  p = p * r + 4.1666667e-2f;
  p = p * r + 1.6666667e-1f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const IntVector scale = (reinterpret_cast<IntVector>(shifted) + 127) << 23;
  p = p * reinterpret_cast<Vector>(scale);
  return x < kLowest ? Vector{} : p;
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

// Writes exp(x - largest) to e and returns its sum. Reads ahead in `next`, the row that follows.
float Exponentials(const float* x, float largest, int64_t columns, float* e, const float* next) {
  Vector sum[2] = {};
  int64_t column = 0;
  for (; column + 2 * kLanes <= columns; column += 2 * kLanes) {
    for (int line = 0; line < 2 * kLanes; line += 16) __builtin_prefetch(next + column + line);
    for (int i = 0; i < 2; ++i) {
      const Vector value = Exponential(Load(x + column + i * kLanes) - largest);
      Store(e + column + i * kLanes, value);
      sum[i] += value;
    }
  }
  for (; column + kLanes <= columns; column += kLanes) {
    const Vector value = Exponential(Load(x + column) - largest);
    Store(e + column, value);
    sum[0] += value;
  }
  if (column < columns) {
    const Vector value = Exponential(LoadTail(x + column, columns - column) - largest);
    sum[1] += value;
    for (int lane = 0; lane < columns - column; ++lane) e[column + lane] = value[lane];
  }
  const Vector all = sum[0] + sum[1];
  float total = 0;
  for (int lane = 0; lane < kLanes; ++lane) total += all[lane];
  return total;
}

void Scale(const float* e, float factor, int64_t columns, float* y) {
  const bool is_aligned = reinterpret_cast<uintptr_t>(y) % sizeof(Vector) == 0 && e != y;
  int64_t column = 0;
  for (; column + kLanes <= columns; column += kLanes) {
    StoreOnce(y + column, Load(e + column) * factor, is_aligned);
  }
  for (; column < columns; ++column) y[column] = e[column] * factor;
}

}  // namespace

ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<float, 2> y) {
  const int64_t rows = x.size(0);
  const int64_t columns = x.size(1);
  alignas(64) float buffer[kBufferColumns];
  for (int64_t row = 0; row < rows; ++row) {
    const float* from = x.data() + row * columns;
    float* to = y.data() + row * columns;
    const float* next = row + 1 < rows ? from + columns : from;
    float* e = columns <= kBufferColumns ? buffer : to;
    const float sum = Exponentials(from, Largest(from, columns), columns, e, next);
    Scale(e, 1.0f / sum, columns, to);
  }
#if defined(__AVX__)
  _mm_sfence();  // streaming stores are ordered before the return
#endif
}
