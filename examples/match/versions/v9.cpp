// The maxima of the next row are found in the loop that computes this row: there is one loop a row, and memory
// and arithmetic are busy at the same time. What comes 16 steps later is asked for ahead.
// A shorter exponential, in base 2: 2^y = 2^n * p(f), f = y - n out of one instruction, without a clamp and
// without a correction; p(0) is exactly 1 and the largest logit gives exactly y = 0, so one dominant logit gives 0.
// Whole blocks of 16 have no masks. While a row is computed, the next one is fetched into the first cache.
#include <assay/kernel.h>
#include <cmath>
#include <immintrin.h>

static inline __m512 exp2_16(__m512 y) {
  const __m512 f = _mm512_reduce_ps(y, 1);  // y - floor(y), 0 for infinities
  __m512 p = _mm512_set1_ps(0.0017883688f);
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.00919938739f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.0556570552f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.240207195f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.69314754f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.0f));
  return _mm512_scalef_ps(p, y)  /* by 2^floor(y) */;
}

ASSAY_KERNEL(assay::Tensor<const float, 2> student,  // [768, 1024]
             assay::Tensor<const float, 2> teacher,  // [768, 1024]
             assay::Tensor<float, 1> out) {          // [768]
  const long rows = student.size(0), n = student.size(1), whole = n & ~15L;
  const __mmask16 rest = static_cast<__mmask16>((1u << (n & 15)) - 1);
  const float* __restrict all_s = student.data();
  const float* __restrict all_t = teacher.data();
  float* __restrict to = out.data();
  const __m512 least = _mm512_set1_ps(-INFINITY), scale = _mm512_set1_ps(1.44269504f);
  __m512 as = least, at = least;  // of the row that comes next
  for (long i = 0; i < whole; i += 16) {
    as = _mm512_max_ps(as, _mm512_loadu_ps(all_s + i));
    at = _mm512_max_ps(at, _mm512_loadu_ps(all_t + i));
  }
  if (rest) {
    as = _mm512_max_ps(as, _mm512_mask_loadu_ps(least, rest, all_s + whole));
    at = _mm512_max_ps(at, _mm512_mask_loadu_ps(least, rest, all_t + whole));
  }
  for (long r = 0; r < rows; ++r) {
    const float* s = all_s + r * n;
    const float* t = all_t + r * n;
    const long next = r + 1 < rows ? n : 0;
    const float ms = _mm512_reduce_max_ps(as), mt = _mm512_reduce_max_ps(at);
    as = at = least;
    const __m512 vs = _mm512_set1_ps(ms), vt = _mm512_set1_ps(mt);
    __m512 zs = _mm512_setzero_ps(), zt = zs, sum = zs;
    for (long i = 0; i < whole; i += 16) {
      _mm_prefetch(reinterpret_cast<const char*>(s + n + i + 256), _MM_HINT_T0);  // never faults
      _mm_prefetch(reinterpret_cast<const char*>(t + n + i + 256), _MM_HINT_T0);
      as = _mm512_max_ps(as, _mm512_loadu_ps(s + next + i));
      at = _mm512_max_ps(at, _mm512_loadu_ps(t + next + i));
      const __m512 a = _mm512_mul_ps(_mm512_sub_ps(_mm512_loadu_ps(s + i), vs), scale);
      const __m512 b = _mm512_mul_ps(_mm512_sub_ps(_mm512_loadu_ps(t + i), vt), scale);
      const __m512 e = exp2_16(b);
      zs = _mm512_add_ps(zs, exp2_16(a));
      zt = _mm512_add_ps(zt, e);
      sum = _mm512_fmadd_ps(e, _mm512_sub_ps(b, a), sum);
    }
    if (rest) {
      as = _mm512_max_ps(as, _mm512_mask_loadu_ps(least, rest, s + next + whole));
      at = _mm512_max_ps(at, _mm512_mask_loadu_ps(least, rest, t + next + whole));
      const __m512 a = _mm512_mul_ps(_mm512_sub_ps(_mm512_maskz_loadu_ps(rest, s + whole), vs), scale);
      const __m512 b = _mm512_mul_ps(_mm512_sub_ps(_mm512_maskz_loadu_ps(rest, t + whole), vt), scale);
      const __m512 e = exp2_16(b);
      zs = _mm512_mask_add_ps(zs, rest, zs, exp2_16(a));
      zt = _mm512_mask_add_ps(zt, rest, zt, e);
      sum = _mm512_mask3_fmadd_ps(e, _mm512_sub_ps(b, a), sum, rest);
    }
    const float z = _mm512_reduce_add_ps(zt);
    to[r] = _mm512_reduce_add_ps(sum) / z * 0.693147181f - std::log(z) + std::log(_mm512_reduce_add_ps(zs));
  }
}
