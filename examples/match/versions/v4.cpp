// While a row is computed, the next one is fetched into the first cache.
// The exponential by hand, 16 at a time: exp(x) = 2^n * p(f), with n = round(x / ln 2) and |f| <= ln 2 / 2.
#include <assay/kernel.h>
#include <cmath>
#include <immintrin.h>

static inline __m512 exp16(__m512 x) {
  x = _mm512_max_ps(_mm512_set1_ps(-110.0f), x);  // this order keeps NaN
  const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)), 0);
  __m512 f = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693145752f), x);
  f = _mm512_fnmadd_ps(n, _mm512_set1_ps(1.42860677e-6f), f);
  __m512 p = _mm512_set1_ps(1.0f / 720);
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.0f / 120));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.0f / 24));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.0f / 6));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.5f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.0f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.0f));
  return _mm512_scalef_ps(p, n);
}

static inline __m512 load(const float* p, long left) {  // -inf beyond the end
  if (left >= 16) return _mm512_loadu_ps(p);
  return _mm512_mask_loadu_ps(_mm512_set1_ps(-INFINITY), static_cast<__mmask16>((1u << left) - 1), p);
}

ASSAY_KERNEL(assay::Tensor<const float, 2> student,  // [768, 1024]
             assay::Tensor<const float, 2> teacher,  // [768, 1024]
             assay::Tensor<float, 1> out) {          // [768]
  const long rows = student.size(0), n = student.size(1);
  for (long r = 0; r < rows; ++r) {
    const float* s = student.data() + r * n;
    const float* t = teacher.data() + r * n;
    __m512 as = _mm512_set1_ps(-INFINITY), at = as;
    for (long i = 0; i < n; i += 16) {
      as = _mm512_max_ps(as, load(s + i, n - i));
      at = _mm512_max_ps(at, load(t + i, n - i));
    }
    const float ms = _mm512_reduce_max_ps(as), mt = _mm512_reduce_max_ps(at);
    const __m512 vs = _mm512_set1_ps(ms), vt = _mm512_set1_ps(mt);
    __m512 zs = _mm512_setzero_ps(), zt = zs, sum = zs;
    for (long i = 0; i < n; i += 16) {
      _mm_prefetch(reinterpret_cast<const char*>(s + n + i), _MM_HINT_T0);  // the next row; never faults
      _mm_prefetch(reinterpret_cast<const char*>(t + n + i), _MM_HINT_T0);
      const __mmask16 live = n - i >= 16 ? 0xffff : static_cast<__mmask16>((1u << (n - i)) - 1);
      const __m512 a = _mm512_sub_ps(load(s + i, n - i), vs), b = _mm512_sub_ps(load(t + i, n - i), vt);
      const __m512 e = exp16(b);
      zs = _mm512_mask_add_ps(zs, live, zs, exp16(a));
      zt = _mm512_mask_add_ps(zt, live, zt, e);
      sum = _mm512_mask3_fmadd_ps(e, _mm512_sub_ps(b, a), sum, live);
    }
    const float z = _mm512_reduce_add_ps(zt);
    out.data()[r] = _mm512_reduce_add_ps(sum) / z - std::log(z) + std::log(_mm512_reduce_add_ps(zs));
  }
}
