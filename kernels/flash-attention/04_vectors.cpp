// Attention on a CPU, sums in registers and exponentials in vectors.
//
// Idea: six queries and 64 keys, or 64 columns of the values, are a product whose 6 x 64 sums stay
// in 24 vectors of AVX-512: each number is loaded once for six multiply-adds. Keys are turned round
// and values padded once a head. The exponential is a polynomial, 16 at once.
// Prediction: 110% of the library, on a processor with AVX-512: some 80% of its multiply-adds in
// the products, and no score in memory.
// Measured: 12 ms at the size of ladder-cpu.toml with one thread, 169.1% of the library.
#include <assay/kernel.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace {

constexpr int kLanes = 16;  // where registers are shorter the compiler takes several
typedef float Vector __attribute__((vector_size(4 * kLanes)));
typedef int32_t IntVector __attribute__((vector_size(4 * kLanes)));
constexpr int64_t kQueries = 6;  // at once, in registers: 6 x 64 sums in 24 vectors
constexpr int64_t kKeys = 64, kVectors = kKeys / kLanes;
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

Vector Load(const float* from) {
  Vector value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

void Store(float* to, Vector value) { __builtin_memcpy(to, &value, sizeof value); }

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

// result[row][0..63] += sum over i of a[row * stride + i] b[i * b_stride + 0..63], for six rows.
void Product(const float* a, int64_t stride, const float* b, int64_t b_stride, int64_t depth,
             float* result, int64_t result_stride) {
  Vector sum[kQueries][kVectors];
#pragma GCC unroll 6
  for (int row = 0; row < kQueries; ++row)
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j)
      sum[row][j] = Load(result + row * result_stride + j * kLanes);
  for (int64_t i = 0; i < depth; ++i) {
    Vector part[kVectors];
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) part[j] = Load(b + i * b_stride + j * kLanes);
#pragma GCC unroll 6
    for (int row = 0; row < kQueries; ++row)
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j) sum[row][j] += a[row * stride + i] * part[j];
  }
#pragma GCC unroll 6
  for (int row = 0; row < kQueries; ++row)
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j)
      Store(result + row * result_stride + j * kLanes, sum[row][j]);
}

// Scores become powers, of the distance to the largest so far; the sums shrink to fit. A row of
// sums is `padded` long, a multiple of 64.
void Weigh(float* score, float& largest, float& sum, float* sums, int64_t padded) {
  Vector most = Load(score);
  for (int j = 1; j < kVectors; ++j) {
    const Vector value = Load(score + j * kLanes);
    most = value > most ? value : most;
  }
  float now = largest;
  for (int lane = 0; lane < kLanes; ++lane) now = std::max(now, most[lane]);
  // Minus infinity where no score counts: (-inf) - (-inf) would be no number.
  const float base = now == kMinusInfinity ? 0 : now;
  const float shrink = std::exp(largest - base);
  largest = now;
  Vector total = {};
  for (int j = 0; j < kVectors; ++j) {
    const Vector weight = Exponential(Load(score + j * kLanes) - base);
    Store(score + j * kLanes, weight);
    total += weight;
  }
  sum *= shrink;
  for (int lane = 0; lane < kLanes; ++lane) sum += total[lane];
  if (shrink == 1) return;
  for (int64_t i = 0; i < padded; i += kLanes) Store(sums + i, Load(sums + i) * shrink);
}

// A head's keys, turned round block by block (64 numbers of 64 keys), and its values, in rows that
// are padded with zeros to a multiple of 64.
struct Head {
  int64_t length, width, padded;
  std::vector<float> keys, values;

  void Fill(const float* k, const float* v) {
    const int64_t blocks = (length + kKeys - 1) / kKeys;
    keys.assign(static_cast<size_t>(blocks * kKeys * width), 0.0f);
    values.assign(static_cast<size_t>(blocks * kKeys * padded), 0.0f);
    for (int64_t row = 0; row < length; ++row) {
      float* const turned = &keys[row / kKeys * kKeys * width + row % kKeys];
      for (int64_t i = 0; i < width; ++i) turned[i * kKeys] = k[row * width + i];
      std::copy_n(v + row * width, width, &values[row * padded]);
    }
  }
};

// Six queries from `first` on; those past the end repeat the last, and are not written.
void Attend(const Head& head, const float* q, int64_t first, bool causal, float* out) {
  const int64_t width = head.width, padded = head.padded;
  const int64_t rows = std::min(kQueries, head.length - first);
  thread_local std::vector<float> scaled, sums;
  scaled.resize(static_cast<size_t>(kQueries * width));
  sums.assign(static_cast<size_t>(kQueries * padded), 0.0f);
  const float scale = 1 / std::sqrt(static_cast<float>(width));
  for (int64_t row = 0; row < kQueries; ++row)
    for (int64_t i = 0; i < width; ++i)
      scaled[row * width + i] = scale * q[(first + std::min(row, rows - 1)) * width + i];
  float largest[kQueries], sum[kQueries] = {};
  std::fill(largest, largest + kQueries, kMinusInfinity);
  const int64_t end = causal ? first + rows : head.length;
  for (int64_t start = 0; start < end; start += kKeys) {
    alignas(64) float score[kQueries * kKeys] = {};
    Product(scaled.data(), width, &head.keys[start * width], kKeys, width, score, kKeys);
    for (int64_t row = 0; row < kQueries; ++row) {
      const int64_t seen = causal ? std::min(first + row + 1, head.length) : head.length;
      for (int64_t column = std::max<int64_t>(seen - start, 0); column < kKeys; ++column)
        score[row * kKeys + column] = kMinusInfinity;
      Weigh(score + row * kKeys, largest[row], sum[row], &sums[row * padded], padded);
    }
    for (int64_t part = 0; part < padded; part += 64)
      Product(score, kKeys, &head.values[start * padded + part], padded, kKeys, &sums[part],
              padded);
  }
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < width; ++i)
      out[(first + row) * width + i] = sums[row * padded + i] / sum[row];
}

}  // namespace

ASSAY_KERNEL(assay::Tensor<const float, 4> query, assay::Tensor<const float, 4> key,
             assay::Tensor<const float, 4> value, assay::Tensor<const bool, 1> causal,
             assay::Tensor<float, 4> out) {
  const int64_t heads = query.size(0) * query.size(1), length = query.size(2);
  const int64_t width = query.size(3);
  const bool is_causal = causal.size(0) == 2;
  Head part{length, width, (width + 63) / 64 * 64, {}, {}};
  for (int64_t head = 0; head < heads; ++head) {
    const int64_t at = head * length * width;
    part.Fill(key.data() + at, value.data() + at);
    for (int64_t first = 0; first < length; first += kQueries)
      Attend(part, query.data() + at, first, is_causal, out.data() + at);
  }
}
