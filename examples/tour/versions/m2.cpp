//! flags -ffp-contract=off
#include <assay/kernel.h>
#include <immintrin.h>

#include <cstdint>
#include <limits>
#include <vector>

namespace {

inline __m512 exp_negative(__m512 x) {
  x = _mm512_max_ps(_mm512_set1_ps(-110.0f), x);  // a NaN in the second operand is returned
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
  p = _mm512_fmadd_ps(p, _mm512_mul_ps(f, f), _mm512_add_ps(f, _mm512_set1_ps(1.0f)));
  return _mm512_scalef_ps(p, n);
}

}  // namespace

ASSAY_KERNEL(assay::Tensor<const float, 4> scores,
             assay::Tensor<const bool, 4> keep,
             assay::Tensor<const float, 3> scale,
             assay::Tensor<float, 4> out) {
  const int64_t batch = scores.size(0), heads = scores.size(1), queries = scores.size(2), keys = scores.size(3);
  const float* all = scores.data();
  const unsigned char* mask = reinterpret_cast<const unsigned char*>(keep.data());
  const float* factors = scale.data();
  float* to = out.data();
  const int64_t blocks = (keys + 15) / 16;
  const int rest = static_cast<int>(keys - (blocks - 1) * 16);
  const __mmask16 last = static_cast<__mmask16>(rest == 16 ? 0xffffu : (1u << rest) - 1u);
  std::vector<__mmask16> bits(static_cast<size_t>(blocks));
  __mmask16* kept = bits.data();
  const __m512 ninf = _mm512_set1_ps(-std::numeric_limits<float>::infinity());

  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t q = 0; q < queries; ++q) {
      const unsigned char* k = mask + (b * queries + q) * keys;
      for (int64_t i = 0; i < blocks; ++i) {
        const __mmask16 inside = i + 1 == blocks ? last : static_cast<__mmask16>(0xffff);
        const __m128i bytes = _mm_maskz_loadu_epi8(inside, k + i * 16);
        kept[i] = _mm_test_epi8_mask(bytes, bytes);
      }
      for (int64_t h = 0; h < heads; ++h) {
        const int64_t row = (b * heads + h) * queries + q;
        const float* in = all + row * keys;
        float* result = to + row * keys;
        const __m512 s = _mm512_set1_ps(factors[h]);
        __m512 top = ninf;
        for (int64_t i = 0; i < blocks; ++i) {
          const __mmask16 inside = i + 1 == blocks ? last : static_cast<__mmask16>(0xffff);
          const __m512 x = _mm512_maskz_loadu_ps(kept[i], in + i * 16);
          const __m512 t = _mm512_mask_mul_ps(ninf, kept[i], x, s);
          _mm512_mask_storeu_ps(result + i * 16, inside, t);
          top = _mm512_max_ps(top, t);
        }
        const __m512 highest = _mm512_set1_ps(_mm512_reduce_max_ps(top));
        __m512 sum = _mm512_setzero_ps();
        for (int64_t i = 0; i < blocks; ++i) {
          const __mmask16 inside = i + 1 == blocks ? last : static_cast<__mmask16>(0xffff);
          const __m512 t = _mm512_mask_loadu_ps(ninf, inside, result + i * 16);
          const __m512 e = _mm512_maskz_mov_ps(kept[i], exp_negative(_mm512_sub_ps(t, highest)));
          sum = _mm512_add_ps(sum, e);
          _mm512_mask_storeu_ps(result + i * 16, inside, e);
        }
        const __m512 inverse = _mm512_set1_ps(1.0f / _mm512_reduce_add_ps(sum));
        for (int64_t i = 0; i < blocks; ++i) {
          const __mmask16 inside = i + 1 == blocks ? last : static_cast<__mmask16>(0xffff);
          const __m512 e = _mm512_maskz_loadu_ps(inside, result + i * 16);
          _mm512_mask_storeu_ps(result + i * 16, inside, _mm512_mul_ps(e, inverse));
        }
      }
    }
  }
}
