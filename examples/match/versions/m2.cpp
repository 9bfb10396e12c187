#include <assay/kernel.h>

#include <bit>
#include <cmath>
#include <cstdint>

//! tune CHUNK = 16 8 32 4

// KL = sum(exp(a) * (a - b)) / sum(exp(a)) + log(sum(exp(b)) / sum(exp(a))), where a = t - max t and b = s - max s:
// per row one pass for the maxima and one for the sums, both over data in the first-level cache.

namespace {

constexpr float kLowest = -87.0f;  // what lies lower has an exponential that counts as zero

// exp(x) for -87 <= x <= 0; lower arguments give exp(-87), and the caller masks them.
[[gnu::always_inline]] inline float exp_bounded(float x) {
  x = x > kLowest ? x : kLowest;
  const float magic = 12582912.0f;  // 1.5 * 2^23: the low bits become the nearest integer
  const float z = x * 1.44269504088896341f + magic;
  const float n = z - magic;
  float r = x - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + (r + 1.0f);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(p) + (std::bit_cast<uint32_t>(z) << 23));
}

[[gnu::always_inline]] inline float masked(float x, uint32_t mask) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(x) & mask);
}

// In double, for rows whose differences leave the range of float.
[[gnu::noinline]] float wide_row(const float* teacher, const float* student, int64_t columns, double top_t, double top_s) {
  double sum_t = 0, sum_s = 0, cross = 0;
  for (int64_t i = 0; i < columns; ++i) {
    const double a = static_cast<double>(teacher[i]) - top_t;
    const double b = static_cast<double>(student[i]) - top_s;
    const double e = std::exp(a);
    sum_t += e;
    sum_s += std::exp(b);
    cross += e * (a - b);
  }
  return static_cast<float>(cross / sum_t + std::log(sum_s / sum_t));
}

inline float one_row(const float* __restrict teacher, const float* __restrict student, int64_t columns) {
  float top_t = teacher[0], top_s = student[0];
#pragma omp simd reduction(max : top_t, top_s)
  for (int64_t i = 0; i < columns; ++i) {
    top_t = teacher[i] > top_t ? teacher[i] : top_t;
    top_s = student[i] > top_s ? student[i] : top_s;
  }

  float sum_t = 0, sum_s = 0, cross = 0;
#pragma omp simd reduction(+ : sum_t, sum_s, cross)
  for (int64_t i = 0; i < columns; ++i) {
    const float a = teacher[i] - top_t;
    const float b = student[i] - top_s;
    const uint32_t keep_a = a >= kLowest ? 0xffffffffu : 0u;
    const uint32_t keep_b = b >= kLowest ? 0xffffffffu : 0u;
    const float ea = masked(exp_bounded(a), keep_a);
    const float eb = masked(exp_bounded(b), keep_b);
    sum_t += ea;
    sum_s += eb;
    cross += ea * masked(a - b, keep_a);
  }

  if (!std::isfinite(cross)) return wide_row(teacher, student, columns, top_t, top_s);
  const double total_t = sum_t, total_s = sum_s;
  return static_cast<float>(static_cast<double>(cross) / total_t + std::log(total_s / total_t));
}

}  // namespace

ASSAY_KERNEL(assay::Tensor<const float, 2> student,
             assay::Tensor<const float, 2> teacher,
             assay::Tensor<float, 1> out) {
  const int64_t rows = student.size(0), columns = student.size(1);
  const float* __restrict from_s = student.data();
  const float* __restrict from_t = teacher.data();
  float* __restrict to = out.data();
#pragma omp parallel for schedule(static, CHUNK) if (rows * columns > 32768)
  for (int64_t row = 0; row < rows; ++row) {
    to[row] = one_row(from_t + row * columns, from_s + row * columns, columns);
  }
}
