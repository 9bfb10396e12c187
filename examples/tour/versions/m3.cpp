#include <assay/kernel.h>
#include <immintrin.h>

#include <cstdint>
#include <limits>

namespace {

inline __attribute__((always_inline)) __m512 exp_negative(__m512 x) {
  x = _mm512_max_ps(_mm512_set1_ps(-110.0f), x);  // NaN comes through
  const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504088896341f)),
                                        _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m512 f = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375f), x);
  f = _mm512_fmadd_ps(n, _mm512_set1_ps(2.12194440e-4f), f);
  __m512 p = _mm512_set1_ps(1.9875691500e-4f);
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.3981999507e-3f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(8.3334519073e-3f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(4.1665795894e-2f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.6666665459e-1f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(5.0000001201e-1f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.0f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.0f));
  return _mm512_scalef_ps(p, n);
}

inline __attribute__((always_inline)) void row_256(const float* in, const unsigned char* keep, float factor, float* out) {
  const __m512 ninf = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
  const __m512 s = _mm512_set1_ps(factor);
  __m512 v[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(keep + 16 * i));
    const __mmask16 k = _mm_test_epi8_mask(bytes, bytes);
    v[i] = _mm512_mask_mul_ps(ninf, k, _mm512_loadu_ps(in + 16 * i), s);
  }
  __m512 m0 = v[0], m1 = v[1], m2 = v[2], m3 = v[3];
#pragma GCC unroll 3
  for (int i = 4; i < 16; i += 4) {
    m0 = _mm512_max_ps(m0, v[i]);
    m1 = _mm512_max_ps(m1, v[i + 1]);
    m2 = _mm512_max_ps(m2, v[i + 2]);
    m3 = _mm512_max_ps(m3, v[i + 3]);
  }
  const __m512 top = _mm512_set1_ps(_mm512_reduce_max_ps(_mm512_max_ps(_mm512_max_ps(m0, m1), _mm512_max_ps(m2, m3))));
  __m512 s0 = _mm512_setzero_ps(), s1 = s0;
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    v[i] = exp_negative(_mm512_sub_ps(v[i], top));
    v[i + 1] = exp_negative(_mm512_sub_ps(v[i + 1], top));
    s0 = _mm512_add_ps(s0, v[i]);
    s1 = _mm512_add_ps(s1, v[i + 1]);
  }
  const __m512 inverse = _mm512_set1_ps(1.0f / _mm512_reduce_add_ps(_mm512_add_ps(s0, s1)));
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) _mm512_storeu_ps(out + 16 * i, _mm512_mul_ps(v[i], inverse));
}

void row_any(const float* in, const unsigned char* keep, float factor, float* out, int64_t keys) {
  const __m512 ninf = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
  const __m512 s = _mm512_set1_ps(factor);
  __m512 top = ninf, sum = _mm512_setzero_ps();
  for (int64_t j = 0; j < keys; j += 16) {
    const __mmask16 in_row = keys - j >= 16 ? 0xffff : static_cast<__mmask16>((1u << (keys - j)) - 1);
    const __m128i bytes = _mm_maskz_loadu_epi8(in_row, keep + j);
    const __mmask16 k = _mm_test_epi8_mask(bytes, bytes);
    const __m512 t = _mm512_mask_mul_ps(ninf, k, _mm512_maskz_loadu_ps(in_row, in + j), s);
    _mm512_mask_storeu_ps(out + j, in_row, t);
    top = _mm512_max_ps(top, t);
  }
  top = _mm512_set1_ps(_mm512_reduce_max_ps(top));
  for (int64_t j = 0; j < keys; j += 16) {
    const __mmask16 in_row = keys - j >= 16 ? 0xffff : static_cast<__mmask16>((1u << (keys - j)) - 1);
    const __m512 e = exp_negative(_mm512_sub_ps(_mm512_maskz_loadu_ps(in_row, out + j), top));
    _mm512_mask_storeu_ps(out + j, in_row, e);
    sum = _mm512_mask_add_ps(sum, in_row, sum, e);
  }
  const __m512 inverse = _mm512_set1_ps(1.0f / _mm512_reduce_add_ps(sum));
  for (int64_t j = 0; j < keys; j += 16) {
    const __mmask16 in_row = keys - j >= 16 ? 0xffff : static_cast<__mmask16>((1u << (keys - j)) - 1);
    _mm512_mask_storeu_ps(out + j, in_row, _mm512_mul_ps(_mm512_maskz_loadu_ps(in_row, out + j), inverse));
  }
}

}  // namespace

ASSAY_KERNEL(assay::Tensor<const float, 4> scores,
             assay::Tensor<const bool, 4> keep,
             assay::Tensor<const float, 3> scale,
             assay::Tensor<float, 4> out) {
  const int64_t batch = scores.size(0), heads = scores.size(1), queries = scores.size(2), keys = scores.size(3);
  const float* from = scores.data();
  const unsigned char* mask = reinterpret_cast<const unsigned char*>(keep.data());
  const float* factors = scale.data();
  float* to = out.data();
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h) {
      const float factor = factors[h];
      const float* in = from + (b * heads + h) * queries * keys;
      float* result = to + (b * heads + h) * queries * keys;
      const unsigned char* k = mask + b * queries * keys;
      if (keys == 256) {
        for (int64_t q = 0; q < queries; ++q) row_256(in + q * 256, k + q * 256, factor, result + q * 256);
      } else {
        for (int64_t q = 0; q < queries; ++q) row_any(in + q * keys, k + q * keys, factor, result + q * keys, keys);
      }
    }
}
