// RMS normalisation, one visit to memory a row.
//
// Idea: PyTorch writes out x^2, then x times the factor, then that times the weight: three passes
// over a matrix that is larger than the caches. Here a row comes into the L1 cache while its
// squares are added up in 64 lanes, and leaves by stores that pass the caches by.
// expected: faster at small
#include <assay/kernel.h>

#include <cmath>

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
constexpr int kSums = 4;  // one sum alone would wait for each of its additions

typedef float Vector __attribute__((vector_size(4 * kLanes)));

Vector Load(const float* from) {
  Vector value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

// Past the caches where the machine has such a store and the address allows it.
void StoreOnce(float* to, Vector value, bool is_aligned) {
#if defined(__AVX512F__)
  if (is_aligned) return _mm512_stream_ps(to, reinterpret_cast<__m512>(value));
#elif defined(__AVX__)
  if (is_aligned) return _mm256_stream_ps(to, reinterpret_cast<__m256>(value));
#endif
  (void)is_aligned;
  __builtin_memcpy(to, &value, sizeof value);
}

// Reads ahead in `next`, the row that follows.
double SumOfSquares(const float* x, int64_t features, const float* next) {
  Vector sums[kSums] = {};
  int64_t i = 0;
  for (; i + kSums * kLanes <= features; i += kSums * kLanes) {
    for (int line = 0; line < kSums * kLanes; line += 16) __builtin_prefetch(next + i + line);
    for (int part = 0; part < kSums; ++part) {
      const Vector value = Load(x + i + part * kLanes);
      sums[part] += value * value;
    }
  }
  const Vector all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  double total = 0;
  for (int lane = 0; lane < kLanes; ++lane) total += static_cast<double>(all[lane]);
  for (; i < features; ++i) total += static_cast<double>(x[i] * x[i]);
  return total;
}

}  // namespace

ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<const float, 1> weight,
             assay::Tensor<float, 2> out) {
  constexpr double kEpsilon = 1e-6;  // EPSILON of the problem file
  const int64_t rows = x.size(0);
  const int64_t features = x.size(1);
  for (int64_t row = 0; row < rows; ++row) {
    const float* from = x.data() + row * features;
    float* to = out.data() + row * features;
    const float* next = row + 1 < rows ? from + features : from;
    const double mean_square = SumOfSquares(from, features, next) / static_cast<double>(features);
    const auto factor = static_cast<float>(1 / std::sqrt(mean_square + kEpsilon));
    const bool is_aligned = reinterpret_cast<uintptr_t>(to) % sizeof(Vector) == 0;
    int64_t i = 0;
    for (; i + kLanes <= features; i += kLanes) {
      StoreOnce(to + i, Load(from + i) * factor * Load(weight.data() + i), is_aligned);
    }
    for (; i < features; ++i) to[i] = from[i] * factor * weight.data()[i];
  }
#if defined(__AVX__)
  _mm_sfence();  // streaming stores are ordered before the return
#endif
}
