#include <assay/kernel.h>

#include <cmath>
#include <cstdint>
#if defined(__AVX512F__) || (defined(__AVX2__) && defined(__FMA__))
#include <immintrin.h>
#endif

namespace {

constexpr float kLowest = -87.0f;  // exp below this counts as zero
constexpr float kLog2e = 1.44269504088896341f;
constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23: rounds to an integer
constexpr float kLn2High = 0.693359375f;
constexpr float kLn2Low = -2.12194440e-4f;
constexpr float kC0 = 1.9875691500e-4f;
constexpr float kC1 = 1.3981999507e-3f;
constexpr float kC2 = 8.3334519073e-3f;
constexpr float kC3 = 4.1665795894e-2f;
constexpr float kC4 = 1.6666665459e-1f;
constexpr float kC5 = 5.0000001201e-1f;

#if defined(__AVX512F__)

struct Lanes {
  using V = __m512;
  static constexpr int64_t W = 16;
  static inline V set(float x) { return _mm512_set1_ps(x); }
  static inline V load(const float* p) { return _mm512_loadu_ps(p); }
  static inline V add(V a, V b) { return _mm512_add_ps(a, b); }
  static inline V sub(V a, V b) { return _mm512_sub_ps(a, b); }
  static inline V max(V a, V b) { return _mm512_max_ps(a, b); }
  static inline float sum(V a) { return _mm512_reduce_add_ps(a); }
  static inline float top(V a) { return _mm512_reduce_max_ps(a); }
  static inline V exp_clamped(V x) {
    x = _mm512_max_ps(x, set(kLowest));
    const V z = _mm512_fmadd_ps(x, set(kLog2e), set(kMagic));
    const V n = _mm512_sub_ps(z, set(kMagic));
    V r = _mm512_fnmadd_ps(n, set(kLn2High), x);
    r = _mm512_fnmadd_ps(n, set(kLn2Low), r);
    V p = set(kC0);
    p = _mm512_fmadd_ps(p, r, set(kC1));
    p = _mm512_fmadd_ps(p, r, set(kC2));
    p = _mm512_fmadd_ps(p, r, set(kC3));
    p = _mm512_fmadd_ps(p, r, set(kC4));
    p = _mm512_fmadd_ps(p, r, set(kC5));
    const V rr = _mm512_mul_ps(r, r);
    p = _mm512_fmadd_ps(p, rr, _mm512_add_ps(r, set(1.0f)));
    const __m512i shift = _mm512_slli_epi32(_mm512_castps_si512(z), 23);
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(p), shift));
  }
  // Adds exp(a), exp(b) and exp(a) * (a - b), leaving out what underflows.
  static inline void step(V a, V b, V& sum_a, V& sum_b, V& cross) {
    const __mmask16 keep_a = _mm512_cmp_ps_mask(a, set(kLowest), _CMP_GE_OQ);
    const __mmask16 keep_b = _mm512_cmp_ps_mask(b, set(kLowest), _CMP_GE_OQ);
    const V ea = exp_clamped(a);
    const V eb = exp_clamped(b);
    sum_a = _mm512_mask_add_ps(sum_a, keep_a, sum_a, ea);
    sum_b = _mm512_mask_add_ps(sum_b, keep_b, sum_b, eb);
    cross = _mm512_mask3_fmadd_ps(ea, _mm512_sub_ps(a, b), cross, keep_a);
  }
};

#elif defined(__AVX2__) && defined(__FMA__)

struct Lanes {
  using V = __m256;
  static constexpr int64_t W = 8;
  static inline V set(float x) { return _mm256_set1_ps(x); }
  static inline V load(const float* p) { return _mm256_loadu_ps(p); }
  static inline V add(V a, V b) { return _mm256_add_ps(a, b); }
  static inline V sub(V a, V b) { return _mm256_sub_ps(a, b); }
  static inline V max(V a, V b) { return _mm256_max_ps(a, b); }
  static inline float sum(V a) {
    __m128 h = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    h = _mm_add_ps(h, _mm_movehl_ps(h, h));
    h = _mm_add_ss(h, _mm_shuffle_ps(h, h, 1));
    return _mm_cvtss_f32(h);
  }
  static inline float top(V a) {
    __m128 h = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    h = _mm_max_ps(h, _mm_movehl_ps(h, h));
    h = _mm_max_ss(h, _mm_shuffle_ps(h, h, 1));
    return _mm_cvtss_f32(h);
  }
  static inline V exp_clamped(V x) {
    x = _mm256_max_ps(x, set(kLowest));
    const V z = _mm256_fmadd_ps(x, set(kLog2e), set(kMagic));
    const V n = _mm256_sub_ps(z, set(kMagic));
    V r = _mm256_fnmadd_ps(n, set(kLn2High), x);
    r = _mm256_fnmadd_ps(n, set(kLn2Low), r);
    V p = set(kC0);
    p = _mm256_fmadd_ps(p, r, set(kC1));
    p = _mm256_fmadd_ps(p, r, set(kC2));
    p = _mm256_fmadd_ps(p, r, set(kC3));
    p = _mm256_fmadd_ps(p, r, set(kC4));
    p = _mm256_fmadd_ps(p, r, set(kC5));
    const V rr = _mm256_mul_ps(r, r);
    p = _mm256_fmadd_ps(p, rr, _mm256_add_ps(r, set(1.0f)));
    const __m256i shift = _mm256_slli_epi32(_mm256_castps_si256(z), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), shift));
  }
  static inline void step(V a, V b, V& sum_a, V& sum_b, V& cross) {
    const V keep_a = _mm256_cmp_ps(a, set(kLowest), _CMP_GE_OQ);
    const V keep_b = _mm256_cmp_ps(b, set(kLowest), _CMP_GE_OQ);
    const V ea = _mm256_and_ps(exp_clamped(a), keep_a);
    const V eb = _mm256_and_ps(exp_clamped(b), keep_b);
    sum_a = _mm256_add_ps(sum_a, ea);
    sum_b = _mm256_add_ps(sum_b, eb);
    cross = _mm256_fmadd_ps(ea, _mm256_and_ps(_mm256_sub_ps(a, b), keep_a), cross);
  }
};

#else

struct Lanes {
  using V = float;
  static constexpr int64_t W = 1;
  static inline V set(float x) { return x; }
  static inline V load(const float* p) { return *p; }
  static inline V add(V a, V b) { return a + b; }
  static inline V sub(V a, V b) { return a - b; }
  static inline V max(V a, V b) { return a > b ? a : b; }
  static inline float sum(V a) { return a; }
  static inline float top(V a) { return a; }
  static inline void step(V a, V b, V& sum_a, V& sum_b, V& cross) {
    if (a >= kLowest) {
      const float ea = std::exp(a);
      sum_a += ea;
      cross += ea * (a - b);
    }
    if (b >= kLowest) sum_b += std::exp(b);
  }
};

#endif

// For rows whose differences leave the range of float.
double wide_row(const float* teacher, const float* student, int64_t columns, double top_t, double top_s) {
  double sum_t = 0, sum_s = 0, cross = 0;
  for (int64_t i = 0; i < columns; ++i) {
    const double a = static_cast<double>(teacher[i]) - top_t;
    const double b = static_cast<double>(student[i]) - top_s;
    const double ea = std::exp(a);
    sum_t += ea;
    sum_s += std::exp(b);
    cross += ea * (a - b);
  }
  return cross / sum_t + std::log(sum_s / sum_t);
}

inline float one_row(const float* __restrict teacher, const float* __restrict student, int64_t columns) {
  using V = Lanes::V;
  constexpr int64_t W = Lanes::W;
  const int64_t whole = columns - columns % W;
  const int64_t pairs = columns - columns % (2 * W);

  V t0 = Lanes::set(teacher[0]), t1 = t0;
  V s0 = Lanes::set(student[0]), s1 = s0;
  for (int64_t i = 0; i < pairs; i += 2 * W) {
    t0 = Lanes::max(t0, Lanes::load(teacher + i));
    s0 = Lanes::max(s0, Lanes::load(student + i));
    t1 = Lanes::max(t1, Lanes::load(teacher + i + W));
    s1 = Lanes::max(s1, Lanes::load(student + i + W));
  }
  for (int64_t i = pairs; i < whole; i += W) {
    t0 = Lanes::max(t0, Lanes::load(teacher + i));
    s0 = Lanes::max(s0, Lanes::load(student + i));
  }
  float top_t = Lanes::top(Lanes::max(t0, t1));
  float top_s = Lanes::top(Lanes::max(s0, s1));
  for (int64_t i = whole; i < columns; ++i) {
    top_t = teacher[i] > top_t ? teacher[i] : top_t;
    top_s = student[i] > top_s ? student[i] : top_s;
  }

  const V shift_t = Lanes::set(top_t), shift_s = Lanes::set(top_s);
  V sum_t = Lanes::set(0.0f), sum_s = Lanes::set(0.0f), cross = Lanes::set(0.0f);
  for (int64_t i = 0; i < whole; i += W) {
    Lanes::step(Lanes::sub(Lanes::load(teacher + i), shift_t), Lanes::sub(Lanes::load(student + i), shift_s), sum_t, sum_s, cross);
  }
  if (whole < columns) {
    alignas(64) float rest_t[W], rest_s[W];
    for (int64_t i = 0; i < W; ++i) {
      const bool inside = whole + i < columns;
      rest_t[i] = inside ? teacher[whole + i] - top_t : -1000.0f;  // exp counts as zero
      rest_s[i] = inside ? student[whole + i] - top_s : -1000.0f;
    }
    Lanes::step(Lanes::load(rest_t), Lanes::load(rest_s), sum_t, sum_s, cross);
  }

  const float total_cross = Lanes::sum(cross);
  if (!std::isfinite(total_cross)) return static_cast<float>(wide_row(teacher, student, columns, top_t, top_s));
  const double total_t = Lanes::sum(sum_t), total_s = Lanes::sum(sum_s);
  return static_cast<float>(static_cast<double>(total_cross) / total_t + std::log(total_s / total_t));
}

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
    to[row] = one_row(from_t + row * columns, from_s + row * columns, columns);
  }
}
