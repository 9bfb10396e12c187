// Masked softmax with a scale a head, one pass over memory: a row is read once, kept in cache, and
// written once. AVX-512; tails by masks.
#include <assay/kernel.h>
#include <immintrin.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// e^x for x <= 0: x = n ln 2 + r, e^r by a polynomial of degree 6, 2^n by scalef, which also gives
// denormal results.
inline __m512 Exp(__m512 x) {
  x = _mm512_max_ps(x, _mm512_set1_ps(-120.0f));
  const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)),
                                        _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375f), x);
  r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-2.12194440e-4f), r);
  __m512 p = _mm512_set1_ps(1.3981999507e-3f);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(8.3334519073e-3f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(4.1665795894e-2f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.6666665459e-1f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.5f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
  return _mm512_scalef_ps(p, n);
}

inline __mmask16 Tail(int64_t left) {
  return left >= 16 ? static_cast<__mmask16>(0xffff)
                    : static_cast<__mmask16>((1u << left) - 1);
}

inline __mmask16 Kept(const bool* keep, __mmask16 tail) {
  const __m128i bytes = _mm_maskz_loadu_epi8(tail, keep);
  return _mm_test_epi8_mask(bytes, bytes);
}

// One row: the scaled scores go into `out`, which is in cache when it is read again.
void Row(const float* in, const bool* keep, float scale, float* out, int64_t keys) {
  const __m512 factor = _mm512_set1_ps(scale), lowest = _mm512_set1_ps(-kInfinity);
  __m512 most = lowest;
  __mmask16 unordered = 0;
  for (int64_t k = 0; k < keys; k += 16) {
    const __mmask16 tail = Tail(keys - k), kept = Kept(keep + k, tail);
    const __m512 value =
        _mm512_mask_mul_ps(lowest, kept, _mm512_maskz_loadu_ps(tail, in + k), factor);
    unordered |= _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
    most = _mm512_max_ps(most, value);
    _mm512_mask_storeu_ps(out + k, tail, value);
  }
  const float peak = _mm512_reduce_max_ps(most);
  if (unordered != 0 || std::isinf(peak)) {  // as PyTorch: the whole row is NaN
    for (int64_t k = 0; k < keys; ++k) out[k] = std::numeric_limits<float>::quiet_NaN();
    return;
  }
  const __m512 shift = _mm512_set1_ps(peak);
  __m512 sum = _mm512_setzero_ps();
  for (int64_t k = 0; k < keys; k += 16) {
    const __mmask16 tail = Tail(keys - k);
    const __m512 value = _mm512_mask_loadu_ps(lowest, tail, out + k);
    const __mmask16 real = _mm512_cmp_ps_mask(value, lowest, _CMP_NEQ_OQ);
    const __m512 power = _mm512_maskz_mov_ps(real, Exp(_mm512_sub_ps(value, shift)));
    sum = _mm512_add_ps(sum, power);
    _mm512_mask_storeu_ps(out + k, tail, power);
  }
  const __m512 part = _mm512_set1_ps(1.0f / _mm512_reduce_add_ps(sum));
  for (int64_t k = 0; k < keys; k += 16) {
    const __mmask16 tail = Tail(keys - k);
    _mm512_mask_storeu_ps(out + k, tail,
                          _mm512_mul_ps(_mm512_maskz_loadu_ps(tail, out + k), part));
  }
}

}  // namespace

ASSAY_KERNEL(assay::Tensor<const float, 4> scores, assay::Tensor<const bool, 4> keep,
             assay::Tensor<const float, 3> scale, assay::Tensor<float, 4> out) {
  const int64_t batch = scores.size(0), heads = scores.size(1), queries = scores.size(2),
                keys = scores.size(3);
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t q = 0; q < queries; ++q) {
        const int64_t row = ((b * heads + h) * queries + q) * keys;
        Row(scores.data() + row, keep.data() + (b * queries + q) * keys, scale.data()[h],
            out.data() + row, keys);
      }
}
