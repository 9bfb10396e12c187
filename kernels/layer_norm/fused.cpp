// Layer normalisation, one visit to memory a row.
//
// Idea: a row comes into the L1 cache while it is added up; the squares of what lies beyond its
// mean are added up there, and the result leaves by stores that pass the caches by, so that no line
// of it is read first. The mean is taken first: the shortcut E[x^2] - E[x]^2 loses the digits of
// values around 1000 that differ by 0.1.
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

double SumOfLanes(const Vector (&sums)[kSums]) {
  const Vector all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  double total = 0;
  for (int lane = 0; lane < kLanes; ++lane) total += static_cast<double>(all[lane]);
  return total;
}

// The mean of x - shift. Reads ahead in `next`, the row that follows.
double Mean(const float* x, float shift, int64_t features, const float* next) {
  Vector sums[kSums] = {};
  int64_t i = 0;
  for (; i + kSums * kLanes <= features; i += kSums * kLanes) {
    for (int line = 0; line < kSums * kLanes; line += 16) __builtin_prefetch(next + i + line);
    for (int part = 0; part < kSums; ++part) sums[part] += Load(x + i + part * kLanes) - shift;
  }
  double total = SumOfLanes(sums);
  for (; i < features; ++i) total += static_cast<double>(x[i] - shift);
  return total / static_cast<double>(features);
}

double Variance(const float* x, float mean, int64_t features) {
  Vector sums[kSums] = {};
  int64_t i = 0;
  for (; i + kSums * kLanes <= features; i += kSums * kLanes) {
    for (int part = 0; part < kSums; ++part) {
      const Vector difference = Load(x + i + part * kLanes) - mean;
      sums[part] += difference * difference;
    }
  }
  double total = SumOfLanes(sums);
  for (; i < features; ++i) total += static_cast<double>((x[i] - mean) * (x[i] - mean));
  return total / static_cast<double>(features);
}

}  // namespace

ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<const float, 1> norm_weight,
             assay::Tensor<const float, 1> norm_bias, assay::Tensor<float, 2> out) {
  constexpr double kEpsilon = 1e-5;  // nn.LayerNorm's default
  const int64_t rows = x.size(0);
  const int64_t features = x.size(1);
  const float* weight = norm_weight.data();
  const float* bias = norm_bias.data();
  for (int64_t row = 0; row < rows; ++row) {
    const float* from = x.data() + row * features;
    float* to = out.data() + row * features;
    const float* next = row + 1 < rows ? from + features : from;
    // Less its first element a row far from zero keeps its digits when it is added up.
    const double offset = Mean(from, from[0], features, next);
    const auto mean = static_cast<float>(static_cast<double>(from[0]) + offset);
    const double variance = Variance(from, mean, features);
    const auto factor = static_cast<float>(1 / std::sqrt(variance + kEpsilon));
    const bool is_aligned = reinterpret_cast<uintptr_t>(to) % sizeof(Vector) == 0;
    int64_t i = 0;
    for (; i + kLanes <= features; i += kLanes) {
      const Vector normal = (Load(from + i) - mean) * factor;
      StoreOnce(to + i, normal * Load(weight + i) + Load(bias + i), is_aligned);
    }
    for (; i < features; ++i) to[i] = (from[i] - mean) * factor * weight[i] + bias[i];
  }
#if defined(__AVX__)
  _mm_sfence();  // streaming stores are ordered before the return
#endif
}
