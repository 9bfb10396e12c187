#include "judge/row_kernels.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace assay {
namespace {

constexpr int64_t kLanes = 8;
typedef double Doubles __attribute__((vector_size(kLanes * sizeof(double))));
typedef float Floats __attribute__((vector_size(kLanes * sizeof(float))));
typedef int64_t Masks __attribute__((vector_size(kLanes * sizeof(int64_t))));

#define ASSAY_INLINE inline __attribute__((always_inline))

ASSAY_INLINE void Load(const float* from, Doubles& to) {
  Floats narrow;
  std::memcpy(&narrow, from, sizeof(narrow));
  to = __builtin_convertvector(narrow, Doubles);
}
ASSAY_INLINE void Load(const double* from, Doubles& to) { std::memcpy(&to, from, sizeof(to)); }

ASSAY_INLINE void Absolute(Doubles& value) {
  const Masks keep = Masks{} + std::numeric_limits<int64_t>::max();
  value = reinterpret_cast<Doubles>(reinterpret_cast<Masks>(value) & keep);
}

template <typename T>
ASSAY_INLINE void SumsBody(const T* y, const T* r, int64_t count, RowSums* sums) {
  Doubles difference2{}, reference2{}, largest{};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Doubles a, b;
    Load(y + i, a);
    Load(r + i, b);
    a -= b;
    difference2 += a * a;
    reference2 += b * b;
    Absolute(a);
    largest = a > largest ? a : largest;
  }
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    sums->difference2 += difference2[lane];
    sums->reference2 += reference2[lane];
    if (largest[lane] > sums->difference_max) sums->difference_max = largest[lane];
  }
  for (; i < count; ++i) {
    const double b = static_cast<double>(r[i]);
    const double difference = static_cast<double>(y[i]) - b;
    sums->difference2 += difference * difference;
    sums->reference2 += b * b;
    if (std::fabs(difference) > sums->difference_max) sums->difference_max = std::fabs(difference);
  }
}

template <typename T>
ASSAY_INLINE double RatioBody(const T* y, const T* r, int64_t count, double offset, double slope) {
  Doubles largest{}, not_finite{};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Doubles a, b;
    Load(y + i, a);
    Load(r + i, b);
    a -= b;
    not_finite += a - a;  // NaN from the first difference on that is NaN or infinite
    Absolute(a);
    Absolute(b);
    const Doubles ratio = a / (offset + slope * b);
    largest = ratio > largest ? ratio : largest;  // false for 0 / 0
  }
  double result = 0;
  double poison = 0;
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    if (largest[lane] > result) result = largest[lane];
    poison += not_finite[lane];
  }
  for (; i < count; ++i) {
    const double b = static_cast<double>(r[i]);
    const double difference = static_cast<double>(y[i]) - b;
    poison += difference - difference;
    const double ratio = std::fabs(difference) / (offset + slope * std::fabs(b));
    if (ratio > result) result = ratio;
  }
  return poison == 0 ? result : std::numeric_limits<double>::infinity();
}

// One set of instantiations a target: the bodies are inlined into functions that may use its instructions.
#define ASSAY_ROW_KERNELS(NAME, TARGET)                                                                    \
  struct NAME {                                                                                            \
    TARGET static void SumsFloat(const float* y, const float* r, int64_t count, RowSums* sums) {           \
      SumsBody(y, r, count, sums);                                                                         \
    }                                                                                                      \
    TARGET static void SumsDouble(const double* y, const double* r, int64_t count, RowSums* sums) {        \
      SumsBody(y, r, count, sums);                                                                         \
    }                                                                                                      \
    TARGET static double RatioFloat(const float* y, const float* r, int64_t count, double offset,          \
                                    double slope) {                                                        \
      return RatioBody(y, r, count, offset, slope);                                                        \
    }                                                                                                      \
    TARGET static double RatioDouble(const double* y, const double* r, int64_t count, double offset,       \
                                     double slope) {                                                       \
      return RatioBody(y, r, count, offset, slope);                                                        \
    }                                                                                                      \
    static constexpr RowKernels kTable{SumsFloat, SumsDouble, RatioFloat, RatioDouble};                    \
  };

ASSAY_ROW_KERNELS(Portable, )
#if defined(__x86_64__)
ASSAY_ROW_KERNELS(Avx2, __attribute__((target("avx2"))))
#endif

}  // namespace

const RowKernels& Kernels() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return Avx2::kTable;
#endif
  return Portable::kTable;
}

}  // namespace assay
