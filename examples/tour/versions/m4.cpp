#include <assay/kernel.h>
#include <immintrin.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace {

inline __attribute__((always_inline)) __m512 exp2_negative(__m512 x) {
  x = _mm512_max_ps(_mm512_set1_ps(-160.0f), x);  // a NaN in the second operand is returned
  const __m512 n = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m512 f = _mm512_sub_ps(x, n);
  __m512 p = _mm512_set1_ps(1.535336188319500e-4f);
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.339887440266574e-3f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(9.618437357674640e-3f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(5.550332471162809e-2f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(2.402264791363012e-1f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(6.931472028550421e-1f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.0f));
  return _mm512_scalef_ps(p, n);
}

inline __mmask16 kept_bits(const unsigned char* keep, __mmask16 inside) {
  const __m128i bytes = _mm_maskz_loadu_epi8(inside, keep);
  return _mm_test_epi8_mask(bytes, bytes);
}

template <int ROWS>
inline __attribute__((always_inline)) void rows(const float* in, const unsigned char* keep, float* out, int64_t keys, __m512 sign, __m512 factor) {
  const __m512 ninf = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
  __m512 top[ROWS], sum[ROWS], scale[ROWS];
#pragma GCC unroll 4
  for (int r = 0; r < ROWS; ++r) {
    top[r] = ninf;
    sum[r] = _mm512_setzero_ps();
  }
  for (int64_t j = 0; j < keys; j += 16) {
    const __mmask16 inside = keys - j >= 16 ? 0xffff : static_cast<__mmask16>((1u << (keys - j)) - 1);
#pragma GCC unroll 4
    for (int r = 0; r < ROWS; ++r) {
      const __mmask16 k = kept_bits(keep + r * keys + j, inside);
      const __m512 x = _mm512_xor_ps(_mm512_maskz_loadu_ps(inside, in + r * keys + j), sign);
      top[r] = _mm512_mask_max_ps(top[r], k, top[r], x);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < ROWS; ++r) top[r] = _mm512_set1_ps(_mm512_reduce_max_ps(top[r]));
  for (int64_t j = 0; j < keys; j += 16) {
    const __mmask16 inside = keys - j >= 16 ? 0xffff : static_cast<__mmask16>((1u << (keys - j)) - 1);
#pragma GCC unroll 4
    for (int r = 0; r < ROWS; ++r) {
      const __mmask16 k = kept_bits(keep + r * keys + j, inside);
      const __m512 x = _mm512_xor_ps(_mm512_maskz_loadu_ps(inside, in + r * keys + j), sign);
      const __m512 d = _mm512_mul_ps(_mm512_sub_ps(x, top[r]), factor);
      const __m512 e = _mm512_maskz_mov_ps(k, exp2_negative(d));
      sum[r] = _mm512_add_ps(sum[r], e);
      _mm512_mask_storeu_ps(out + r * keys + j, inside, e);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < ROWS; ++r) scale[r] = _mm512_set1_ps(1.0f / _mm512_reduce_add_ps(sum[r]));
  for (int64_t j = 0; j < keys; j += 16) {
    const __mmask16 inside = keys - j >= 16 ? 0xffff : static_cast<__mmask16>((1u << (keys - j)) - 1);
#pragma GCC unroll 4
    for (int r = 0; r < ROWS; ++r) {
      float* to = out + r * keys + j;
      _mm512_mask_storeu_ps(to, inside, _mm512_mul_ps(_mm512_maskz_loadu_ps(inside, to), scale[r]));
    }
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
      const float s = factors[h];
      const __m512 sign = _mm512_set1_ps(std::signbit(s) ? -0.0f : 0.0f);
      const __m512 factor = _mm512_set1_ps(std::fabs(s) * 1.44269504088896341f);
      const float* in = from + (b * heads + h) * queries * keys;
      float* result = to + (b * heads + h) * queries * keys;
      const unsigned char* k = mask + b * queries * keys;
      int64_t q = 0;
      for (; q + 2 <= queries; q += 2) rows<2>(in + q * keys, k + q * keys, result + q * keys, keys, sign, factor);
      for (; q < queries; ++q) rows<1>(in + q * keys, k + q * keys, result + q * keys, keys, sign, factor);
    }
}
