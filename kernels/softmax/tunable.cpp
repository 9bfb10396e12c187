// Softmax with seven choices left open, for `assay search`: 1152 variants.
//
// Idea: what is best depends on the machine: how wide vectors are, how many are in hand at a time,
// whether the exponentials wait in a small buffer or in the output, whether stores pass the caches
// by, how far ahead the next row is asked for, and how exact the exponential must be (a polynomial
// of degree 4 is too coarse: the judge refuses it). The first value of each line is taken by
// `assay judge`; it is a plain kernel with narrow vectors.
// expected: slower at small
//! flags -fopenmp
//! tune LANES = 4 8 16
//! tune VECTORS = 1 2 4 8
//! tune DEGREE = 6 5 4
//! tune BUFFERED = 0 1
//! tune STREAMED = 0 1
//! tune AHEAD = 0 16 256 2048
//! tune THREADED = 0 1
//! require LANES * VECTORS <= 128
#include <assay/kernel.h>

#include <cmath>
#include <limits>

#if defined(__AVX__)
#include <immintrin.h>
#endif

namespace {

constexpr int kStep = LANES * VECTORS;
constexpr int64_t kBufferColumns = 8192;  // longer rows are worked on in the output itself

typedef float Vector __attribute__((vector_size(4 * LANES)));
typedef int32_t IntVector __attribute__((vector_size(4 * LANES)));

Vector Load(const float* from) {
  Vector value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

void Store(float* to, Vector value) { __builtin_memcpy(to, &value, sizeof value); }

// Past the caches where that was chosen and the machine has such a store.
void StoreOnce(float* to, Vector value) {
  if (STREAMED && reinterpret_cast<uintptr_t>(to) % sizeof value == 0) {
#if defined(__AVX512F__) && LANES == 16
    return _mm512_stream_ps(to, reinterpret_cast<__m512>(value));
#elif defined(__AVX__) && LANES == 8
    return _mm256_stream_ps(to, reinterpret_cast<__m256>(value));
#elif defined(__SSE__) && LANES == 4
    return _mm_stream_ps(to, reinterpret_cast<__m128>(value));
#endif
  }
  Store(to, value);
}

Vector Maximum(Vector a, Vector b) { return b > a ? b : a; }

// exp(x) for x <= 0. x = n ln 2 + r with |r| <= ln 2 / 2; exp(r) by its Taylor series, times 2^n.
// Below the smallest normal float: zero. NaN stays.
Vector Exponential(Vector x) {
  constexpr float kLowest = -87.3365f;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to a whole number
  const Vector clamped = x < kLowest ? Vector{} + kLowest : x;
  const Vector shifted = clamped * 1.44269504f + kRound;
  const Vector n = shifted - kRound;
  // ln 2 in two parts: the first has few bits, so that its product with n is exact.
  const Vector r = clamped - n * 0.693359375f + n * 2.12194440e-4f;
  Vector p = {};
  if (DEGREE >= 6) p = p * r + 1.3888889e-3f;
  if (DEGREE >= 5) p = p * r + 8.3333333e-3f;
  p = p * r + 4.1666667e-2f;
  p = p * r + 1.6666667e-1f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  p *= reinterpret_cast<Vector>((reinterpret_cast<IntVector>(shifted) + 127) << 23);
  return x < kLowest ? Vector{} : p;
}

// The last elements of a row, fewer than a vector; the lanes behind them are minus infinity, which
// adds nothing.
Vector LoadTail(const float* from, int64_t count) {
  Vector value = Vector{} - std::numeric_limits<float>::infinity();
  __builtin_memcpy(&value, from, sizeof(float) * static_cast<size_t>(count));
  return value;
}

float Largest(const float* x, int64_t columns) {
  Vector largest[VECTORS];
  for (Vector& part : largest) part = Vector{} - std::numeric_limits<float>::infinity();
  int64_t i = 0;
  for (; i + kStep <= columns; i += kStep)
    for (int v = 0; v < VECTORS; ++v) largest[v] = Maximum(largest[v], Load(x + i + v * LANES));
  for (; i + LANES <= columns; i += LANES) largest[0] = Maximum(largest[0], Load(x + i));
  if (i < columns) largest[0] = Maximum(largest[0], LoadTail(x + i, columns - i));
  for (int v = 1; v < VECTORS; ++v) largest[0] = Maximum(largest[0], largest[v]);
  float result = largest[0][0];
  for (int lane = 1; lane < LANES; ++lane) result = std::fmax(result, largest[0][lane]);
  return result;
}

// Writes exp(x - largest) to e and returns the sum.
float Exponentials(const float* x, float largest, int64_t columns, float* e) {
  Vector sum[VECTORS] = {};
  int64_t i = 0;
  for (; i + kStep <= columns; i += kStep) {
    if (AHEAD > 0)
      for (int line = 0; line < kStep; line += 16) __builtin_prefetch(x + i + line + AHEAD);
    for (int v = 0; v < VECTORS; ++v) {
      const Vector value = Exponential(Load(x + i + v * LANES) - largest);
      Store(e + i + v * LANES, value);
      sum[v] += value;
    }
  }
  for (; i + LANES <= columns; i += LANES) {
    const Vector value = Exponential(Load(x + i) - largest);
    Store(e + i, value);
    sum[0] += value;
  }
  if (i < columns) {
    const Vector value = Exponential(LoadTail(x + i, columns - i) - largest);
    __builtin_memcpy(e + i, &value, sizeof(float) * static_cast<size_t>(columns - i));
    for (int lane = 0; lane < columns - i; ++lane) sum[0][lane] += value[lane];
  }
  for (int v = 1; v < VECTORS; ++v) sum[0] += sum[v];
  float total = 0;
  for (int lane = 0; lane < LANES; ++lane) total += sum[0][lane];
  return total;
}

void Softmax(const float* x, int64_t columns, float* y) {
  alignas(64) float buffer[BUFFERED ? kBufferColumns : 1];
  float* e = BUFFERED && columns <= kBufferColumns ? buffer : y;
  const float scale = 1 / Exponentials(x, Largest(x, columns), columns, e);
  int64_t i = 0;
  for (; i + LANES <= columns; i += LANES) StoreOnce(y + i, Load(e + i) * scale);
  for (; i < columns; ++i) y[i] = e[i] * scale;
}

void Rows(const float* x, float* y, int64_t begin, int64_t end, int64_t columns) {
  for (int64_t row = begin; row < end; ++row)
    Softmax(x + row * columns, columns, y + row * columns);
#if defined(__SSE__)
  if (STREAMED) _mm_sfence();  // streaming stores are ordered before the return
#endif
}

}  // namespace

ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<float, 2> y) {
  const int64_t rows = x.size(0), columns = x.size(1);
  if (!THREADED) return Rows(x.data(), y.data(), 0, rows, columns);
  constexpr int64_t kTask = 16;  // rows
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; row += kTask)
    Rows(x.data(), y.data(), row, row + kTask < rows ? row + kTask : rows, columns);
}
