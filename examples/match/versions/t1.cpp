#include <assay/kernel.h>

#include <cmath>
#include <cstdint>
#if defined(__AVX512F__) && defined(__AVX512DQ__)
#include <immintrin.h>
#endif

namespace {

// For rows whose values or differences leave the range that the fast way is right in.
[[gnu::noinline]] float wide_row(const float* teacher, const float* student, int64_t columns, double top_t, double top_s) {
  double sum_t = 0, sum_s = 0, cross = 0;
  for (int64_t i = 0; i < columns; ++i) {
    const double a = static_cast<double>(teacher[i]) - top_t;
    const double b = static_cast<double>(student[i]) - top_s;
    const double ea = std::exp(a);
    sum_t += ea;
    sum_s += std::exp(b);
    cross += ea * (a - b);
  }
  return static_cast<float>(cross / sum_t + std::log(sum_s / sum_t));
}

#if defined(__AVX512F__) && defined(__AVX512DQ__)

constexpr float kLog2e = 1.44269504088896341f;
constexpr double kLn2 = 0.693147180559945309;
constexpr float kLargest = 65536.0f;  // of a maximum, so that rounding max * log2(e) shifts y by less than 0.004

// 2^y: a polynomial of degree 5 in y - floor(y), in [0, 1]; scalef multiplies by 2^floor(y), and gives 0 where that underflows.
[[gnu::always_inline]] inline __m512 power(__m512 y) {
  const __m512 r = _mm512_reduce_ps(y, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
  __m512 p = _mm512_set1_ps(1.8775767e-3f);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(8.9893397e-3f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(5.5826318e-2f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(2.4015361e-1f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(6.9315308e-1f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(9.9999994e-1f));
  return _mm512_scalef_ps(p, y);
}

inline float one_row(const float* __restrict teacher, const float* __restrict student, int64_t columns,
                     const float* next_teacher, const float* next_student) {
  constexpr int64_t W = 16;
  const int64_t whole = columns - columns % W;
  const int64_t pairs = columns - columns % (2 * W);
  const __mmask16 rest = static_cast<__mmask16>((1u << (columns % W)) - 1u);

  __m512 t0 = _mm512_set1_ps(teacher[0]), t1 = t0;
  __m512 s0 = _mm512_set1_ps(student[0]), s1 = s0;
  for (int64_t i = 0; i < pairs; i += 2 * W) {
    t0 = _mm512_max_ps(t0, _mm512_loadu_ps(teacher + i));
    s0 = _mm512_max_ps(s0, _mm512_loadu_ps(student + i));
    t1 = _mm512_max_ps(t1, _mm512_loadu_ps(teacher + i + W));
    s1 = _mm512_max_ps(s1, _mm512_loadu_ps(student + i + W));
  }
  if (pairs < whole) {
    t0 = _mm512_max_ps(t0, _mm512_loadu_ps(teacher + pairs));
    s0 = _mm512_max_ps(s0, _mm512_loadu_ps(student + pairs));
  }
  if (rest) {
    t1 = _mm512_mask_max_ps(t1, rest, t1, _mm512_maskz_loadu_ps(rest, teacher + whole));
    s1 = _mm512_mask_max_ps(s1, rest, s1, _mm512_maskz_loadu_ps(rest, student + whole));
  }
  const float top_t = _mm512_reduce_max_ps(_mm512_max_ps(t0, t1));
  const float top_s = _mm512_reduce_max_ps(_mm512_max_ps(s0, s1));
  if (!(std::fabs(top_t) <= kLargest && std::fabs(top_s) <= kLargest)) return wide_row(teacher, student, columns, top_t, top_s);

  const __m512 scale = _mm512_set1_ps(kLog2e);
  const __m512 shift_t = _mm512_set1_ps(top_t * kLog2e), shift_s = _mm512_set1_ps(top_s * kLog2e);
  __m512 sum_t = _mm512_setzero_ps(), sum_s = _mm512_setzero_ps(), cross = _mm512_setzero_ps();
  for (int64_t i = 0; i < whole; i += W) {
    _mm_prefetch(reinterpret_cast<const char*>(next_teacher + i), _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char*>(next_student + i), _MM_HINT_T0);
    const __m512 a = _mm512_fmsub_ps(_mm512_loadu_ps(teacher + i), scale, shift_t);
    const __m512 b = _mm512_fmsub_ps(_mm512_loadu_ps(student + i), scale, shift_s);
    const __m512 ea = power(a);
    sum_t = _mm512_add_ps(sum_t, ea);
    sum_s = _mm512_add_ps(sum_s, power(b));
    cross = _mm512_fmadd_ps(ea, _mm512_sub_ps(a, b), cross);
  }
  if (rest) {
    const __m512 a = _mm512_fmsub_ps(_mm512_maskz_loadu_ps(rest, teacher + whole), scale, shift_t);
    const __m512 b = _mm512_fmsub_ps(_mm512_maskz_loadu_ps(rest, student + whole), scale, shift_s);
    const __m512 ea = power(a);
    sum_t = _mm512_mask_add_ps(sum_t, rest, sum_t, ea);
    sum_s = _mm512_mask_add_ps(sum_s, rest, sum_s, power(b));
    cross = _mm512_mask3_fmadd_ps(ea, _mm512_sub_ps(a, b), cross, rest);
  }

  const float total_cross = _mm512_reduce_add_ps(cross);
  if (!std::isfinite(total_cross)) return wide_row(teacher, student, columns, top_t, top_s);
  const double total_t = _mm512_reduce_add_ps(sum_t), total_s = _mm512_reduce_add_ps(sum_s);
  return static_cast<float>(kLn2 * static_cast<double>(total_cross) / total_t + std::log(total_s / total_t));
}

#else

inline float one_row(const float* __restrict teacher, const float* __restrict student, int64_t columns, const float*, const float*) {
  float top_t = teacher[0], top_s = student[0];
  for (int64_t i = 1; i < columns; ++i) {
    top_t = teacher[i] > top_t ? teacher[i] : top_t;
    top_s = student[i] > top_s ? student[i] : top_s;
  }
  float sum_t = 0, sum_s = 0, cross = 0;
#pragma omp simd reduction(+ : sum_t, sum_s, cross)
  for (int64_t i = 0; i < columns; ++i) {
    const float a = teacher[i] - top_t;
    const float b = student[i] - top_s;
    const float ea = std::exp(a);
    sum_t += ea;
    sum_s += std::exp(b);
    cross += ea * (a - b);
  }
  if (!std::isfinite(cross)) return wide_row(teacher, student, columns, top_t, top_s);
  const double total_t = sum_t, total_s = sum_s;
  return static_cast<float>(static_cast<double>(cross) / total_t + std::log(total_s / total_t));
}

#endif

}  // namespace

ASSAY_KERNEL(assay::Tensor<const float, 2> student,
             assay::Tensor<const float, 2> teacher,
             assay::Tensor<float, 1> out) {
  const int64_t rows = student.size(0), columns = student.size(1);
  const float* __restrict from_s = student.data();
  const float* __restrict from_t = teacher.data();
  float* __restrict to = out.data();
#pragma omp parallel for schedule(static) if (rows * columns > 32768)
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t next = row + 1 < rows ? row + 1 : row;
    to[row] = one_row(from_t + row * columns, from_s + row * columns, columns, from_t + next * columns, from_s + next * columns);
  }
}
