//! flags -fno-trapping-math -fno-math-errno
#include <assay/kernel.h>

#include <bit>
#include <cstdint>
#include <limits>

namespace {

// exp(x) for x <= 0 (or NaN, or minus infinity).
inline float exp_negative(float x) {
  const float low = -87.0f;
  const float c = x < low ? low : x;  // NaN stays
  const float magic = 12582912.0f;
  const float z = c * 1.44269504088896341f + magic;
  const float n = z - magic;
  float f = c - n * 0.693359375f;
  f = f + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * f + 1.3981999507e-3f;
  p = p * f + 8.3334519073e-3f;
  p = p * f + 4.1665795894e-2f;
  p = p * f + 1.6666665459e-1f;
  p = p * f + 5.0000001201e-1f;
  p = p * (f * f) + f + 1.0f;
  const uint32_t bits = (std::bit_cast<uint32_t>(z) << 23) + 0x3f800000u;
  const float r = p * std::bit_cast<float>(bits);
  return x < low ? 0.0f : r;
}

}  // namespace

ASSAY_KERNEL(assay::Tensor<const float, 4> scores,
             assay::Tensor<const bool, 4> keep,
             assay::Tensor<const float, 3> scale,
             assay::Tensor<float, 4> out) {
  const int64_t batch = scores.size(0), heads = scores.size(1), queries = scores.size(2), keys = scores.size(3);
  const float* __restrict all = scores.data();
  const unsigned char* __restrict mask = reinterpret_cast<const unsigned char*>(keep.data());
  const float* __restrict factors = scale.data();
  float* __restrict to = out.data();
  const float ninf = -std::numeric_limits<float>::infinity();
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      const float s = factors[h];
      for (int64_t q = 0; q < queries; ++q) {
        const int64_t row = (b * heads + h) * queries + q;
        const float* __restrict in = all + row * keys;
        const unsigned char* __restrict k = mask + (b * queries + q) * keys;
        float* __restrict result = to + row * keys;
        float top = ninf;
#pragma omp simd reduction(max : top)
        for (int64_t j = 0; j < keys; ++j) {
          const float v = in[j] * s;
          const float t = k[j] != 0 ? v : ninf;
          result[j] = t;
          top = t > top ? t : top;
        }
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t j = 0; j < keys; ++j) {
          const float e = exp_negative(result[j] - top);
          result[j] = e;
          sum += e;
        }
        const float inverse = 1.0f / sum;
#pragma omp simd
        for (int64_t j = 0; j < keys; ++j) result[j] *= inverse;
      }
    }
  }
}
