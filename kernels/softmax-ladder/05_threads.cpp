// Softmax on a CPU, rows shared out to threads.
//
// Idea: rows do not depend on each other, so each thread takes as many as the others.
// Prediction: 150% of the library, which has as many threads: nothing is gained against the rung
// before with one thread, and twice its speed is had with two as long as memory keeps up.
// Measured: 1.71 ms at the size of ladder-cpu.toml with one thread, 283.4% of the library.
//! flags -fopenmp

#include <assay/kernel.h>

#include <cmath>
#include <limits>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace {

constexpr int kLanes = 16;  // where registers are shorter the compiler takes several
typedef float Vector __attribute__((vector_size(4 * kLanes)));
typedef int32_t IntVector __attribute__((vector_size(4 * kLanes)));
constexpr int64_t kBufferColumns = 4096;  // 16 KiB: longer rows are worked on in the output itself

Vector Load(const float* from) {
  Vector value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

void Store(float* to, Vector value) { __builtin_memcpy(to, &value, sizeof value); }

// Past the caches: a plain store would first read the line that it overwrites.
void StoreOnce(float* to, Vector value) {
#if defined(__AVX512F__)
  if (reinterpret_cast<uintptr_t>(to) % 64 == 0)
    return _mm512_stream_ps(to, reinterpret_cast<__m512>(value));
#endif
  Store(to, value);
}

// The last values of a row, fewer than a vector; the lanes behind them are minus infinity.
Vector LoadTail(const float* from, int64_t count) {
  Vector value = Vector{} - std::numeric_limits<float>::infinity();
  __builtin_memcpy(&value, from, sizeof(float) * count);
  return value;
}

float Largest(const float* x, int64_t columns) {
  Vector largest = Vector{} - std::numeric_limits<float>::infinity();
  int64_t i = 0;
  for (; i + kLanes <= columns; i += kLanes) {
    const Vector value = Load(x + i);
    largest = value > largest ? value : largest;
  }
  const Vector value = LoadTail(x + i, columns - i);
  largest = value > largest ? value : largest;
  float result = largest[0];
  for (int lane = 1; lane < kLanes; ++lane) result = std::fmax(result, largest[lane]);
  return result;
}

// exp(x) for x <= 0. x = n ln 2 + r with |r| <= ln 2 / 2; exp(r) is a polynomial of degree 6 (the
// Taylor series, off by at most 1.2e-7 there), and 2^n goes into the exponent's bits. Below the
// smallest normal float the result is 0. NaN stays.
Vector Exponential(Vector x) {
  constexpr float kLowest = -87.3365f;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to a whole number
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
  const IntVector power = (reinterpret_cast<IntVector>(shifted) + 127) << 23;
  p *= reinterpret_cast<Vector>(power);
  return x < kLowest ? Vector{} : p;
}

// Writes exp(x - largest) to e and returns the sum. Reads ahead in `next`, the row that follows.
float Exponentials(const float* x, float largest, int64_t columns, float* e, const float* next) {
  Vector sum = {};
  int64_t i = 0;
  for (; i + kLanes <= columns; i += kLanes) {
    __builtin_prefetch(next + i);
    const Vector value = Exponential(Load(x + i) - largest);
    Store(e + i, value);
    sum += value;
  }
  const Vector value = Exponential(LoadTail(x + i, columns - i) - largest);
  __builtin_memcpy(e + i, &value, sizeof(float) * (columns - i));
  float total = 0;
  for (int lane = 0; lane < kLanes; ++lane)
    total += sum[lane] + (lane < columns - i ? value[lane] : 0);
  return total;
}

void Softmax(const float* x, int64_t columns, float* y, const float* next) {
  alignas(64) float buffer[kBufferColumns];
  float* e = columns <= kBufferColumns ? buffer : y;
  const float scale = 1 / Exponentials(x, Largest(x, columns), columns, e, next);
  int64_t i = 0;
  for (; i + kLanes <= columns; i += kLanes) StoreOnce(y + i, Load(e + i) * scale);
  for (; i < columns; ++i) y[i] = e[i] * scale;
}

}  // namespace

ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<float, 2> y) {
  const int64_t rows = x.size(0), columns = x.size(1);
  const float* from = x.data();
  float* to = y.data();
#pragma omp parallel
  {
#pragma omp for schedule(static)
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t next = row + 1 < rows ? row + 1 : row;
      Softmax(from + row * columns, columns, to + row * columns, from + next * columns);
    }
#if defined(__AVX512F__)
    _mm_sfence();  // streaming stores are ordered before the return
#endif
  }
}
