// Kullback-Leibler divergence of each row, from three sums that one pass adds up.
//
// Idea: with s and t the logits less their rows' largest, and S and T the sums of their
// exponentials, the divergence is sum(exp(t) (t - s)) / T + log S - log T: no logarithm and no
// probability of a single element is needed, and nothing is stored. PyTorch makes six passes, five
// of which write whole matrices.
// expected: faster at small
#include <assay/kernel.h>

#include <cmath>
#include <limits>

namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif

typedef float Vector __attribute__((vector_size(4 * kLanes)));
typedef int32_t IntVector __attribute__((vector_size(4 * kLanes)));

Vector Load(const float* from) {
  Vector value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

Vector Maximum(Vector a, Vector b) { return b > a ? b : a; }

// exp(x) for x <= 0, to about 1 unit in the last place: x = n ln 2 + r with |r| <= ln 2 / 2, exp(r)
// by a polynomial, scaled by 2^n. Below the smallest normal float: zero. NaN stays.
Vector Exponential(Vector x) {
  constexpr float kLowest = -87.3365f;
  constexpr float kRound =
      12582912.0f;  // 1.5 * 2^23: adding it leaves a whole number in the low bits
  const Vector clamped = x < kLowest ? Vector{} + kLowest : x;
  const Vector shifted = clamped * 1.44269504f + kRound;
  const Vector n = shifted - kRound;
  // ln 2 in two parts: the first has few bits, so that its product with n is exact.
  const Vector r = clamped - n * 0.693359375f + n * 2.12194440e-4f;
  Vector p = r * 1.3888889e-3f + 8.3333333e-3f;
  p = p * r + 4.1666667e-2f;
  p = p * r + 1.6666667e-1f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const IntVector scale = (reinterpret_cast<IntVector>(shifted) + 127) << 23;
  return x < kLowest ? Vector{} : p * reinterpret_cast<Vector>(scale);
}

float Largest(const float* x, int64_t columns) {
  Vector largest = Vector{} - std::numeric_limits<float>::infinity();
  int64_t column = 0;
  for (; column + kLanes <= columns; column += kLanes) {
    largest = Maximum(largest, Load(x + column));
  }
  float result = largest[0];
  for (int lane = 1; lane < kLanes; ++lane)
    result = largest[lane] > result ? largest[lane] : result;
  for (; column < columns; ++column) result = x[column] > result ? x[column] : result;
  return result;
}

double SumOfLanes(Vector value) {
  double total = 0;
  for (int lane = 0; lane < kLanes; ++lane) total += static_cast<double>(value[lane]);
  return total;
}

// The weights are not divided by T yet: without it they would carry the largest floats to infinity.
constexpr float kShrink = 0x1p-20f;

struct Sums {
  Vector student = {};   // of exp(s)
  Vector teacher = {};   // of exp(t)
  Vector weighted = {};  // of exp(t) (t - s) kShrink

  void Add(Vector s, Vector t) {
    const Vector weight = Exponential(t);
    student += Exponential(s);
    teacher += weight;
    weighted += weight * ((t - s) * kShrink);
  }
};

float Divergence(const float* student, const float* teacher, int64_t columns) {
  const float student_largest = Largest(student, columns);
  const float teacher_largest = Largest(teacher, columns);
  Sums sums[2];
  int64_t column = 0;
  for (; column + 2 * kLanes <= columns; column += 2 * kLanes) {
    for (int i = 0; i < 2; ++i) {
      sums[i].Add(Load(student + column + i * kLanes) - student_largest,
                  Load(teacher + column + i * kLanes) - teacher_largest);
    }
  }
  double student_sum = SumOfLanes(sums[0].student + sums[1].student);
  double teacher_sum = SumOfLanes(sums[0].teacher + sums[1].teacher);
  double weighted = SumOfLanes(sums[0].weighted + sums[1].weighted) / static_cast<double>(kShrink);
  for (; column < columns; ++column) {
    const double s = static_cast<double>(student[column] - student_largest);
    const double t = static_cast<double>(teacher[column] - teacher_largest);
    student_sum += std::exp(s);
    teacher_sum += std::exp(t);
    weighted += std::exp(t) * (t - s);
  }
  return static_cast<float>(weighted / teacher_sum + std::log(student_sum / teacher_sum));
}

}  // namespace

ASSAY_KERNEL(assay::Tensor<const float, 2> student, assay::Tensor<const float, 2> teacher,
             assay::Tensor<float, 1> out) {
  const int64_t columns = student.size(1);
  for (int64_t row = 0; row < student.size(0); ++row) {
    out(row) = Divergence(student.data() + row * columns, teacher.data() + row * columns, columns);
  }
}
