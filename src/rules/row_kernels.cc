#include "rules/row_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace assay {
namespace {

#define ASSAY_INLINE inline __attribute__((always_inline))

// Registers of a target, and so many of them at a time that additions need not wait for each other.
constexpr int64_t kRegisters = 4;

struct TwoLanes {  // what every x86-64 and ARM machine has
  static constexpr int64_t kLanes = 2;
  typedef double Doubles __attribute__((vector_size(16)));
  typedef float Floats __attribute__((vector_size(8)));
  typedef int64_t Masks __attribute__((vector_size(16)));
};
struct FourLanes {  // AVX2
  static constexpr int64_t kLanes = 4;
  typedef double Doubles __attribute__((vector_size(32)));
  typedef float Floats __attribute__((vector_size(16)));
  typedef int64_t Masks __attribute__((vector_size(32)));
};

template <typename V>
ASSAY_INLINE void Load(const float* from, typename V::Doubles& to) {
  typename V::Floats narrow;
  std::memcpy(&narrow, from, sizeof(narrow));
  to = __builtin_convertvector(narrow, typename V::Doubles);
}
template <typename V>
ASSAY_INLINE void Load(const double* from, typename V::Doubles& to) {
  std::memcpy(&to, from, sizeof(to));
}
template <typename V>
ASSAY_INLINE void MakeAbsolute(typename V::Doubles& value) {
  using Masks = typename V::Masks;
  const Masks keep = Masks{} + std::numeric_limits<int64_t>::max();
  value = reinterpret_cast<typename V::Doubles>(reinterpret_cast<Masks>(value) & keep);
}

template <typename V, typename T>
ASSAY_INLINE void SumsBody(const T* y, const T* r, int64_t count, RowSums* sums) {
  constexpr int64_t kLanes = V::kLanes;
  typename V::Doubles difference2[kRegisters] = {};
  typename V::Doubles reference2[kRegisters] = {};
  typename V::Doubles largest[kRegisters] = {};
  int64_t i = 0;
  for (; i + kRegisters * kLanes <= count; i += kRegisters * kLanes) {
#pragma GCC unroll 4
    for (int64_t k = 0; k < kRegisters; ++k) {
      typename V::Doubles a, b;
      Load<V>(y + i + k * kLanes, a);
      Load<V>(r + i + k * kLanes, b);
      a -= b;
      difference2[k] += a * a;
      reference2[k] += b * b;
      MakeAbsolute<V>(a);
      largest[k] = a > largest[k] ? a : largest[k];
    }
  }
#pragma GCC unroll 4
  for (int64_t k = 1; k < kRegisters; ++k) {
    difference2[0] += difference2[k];
    reference2[0] += reference2[k];
    largest[0] = largest[k] > largest[0] ? largest[k] : largest[0];
  }
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    sums->difference2 += difference2[0][lane];
    sums->reference2 += reference2[0][lane];
    if (largest[0][lane] > sums->difference_max) sums->difference_max = largest[0][lane];
  }
  for (; i < count; ++i) {
    const double b = static_cast<double>(r[i]);
    const double difference = static_cast<double>(y[i]) - b;
    sums->difference2 += difference * difference;
    sums->reference2 += b * b;
    if (std::fabs(difference) > sums->difference_max) sums->difference_max = std::fabs(difference);
  }
}

template <typename V, typename T>
ASSAY_INLINE double RatioBody(const T* y, const T* r, int64_t count, double offset, double slope) {
  constexpr int64_t kLanes = V::kLanes;
  typename V::Doubles largest[kRegisters] = {};
  typename V::Doubles not_finite[kRegisters] = {};
  int64_t i = 0;
  for (; i + kRegisters * kLanes <= count; i += kRegisters * kLanes) {
#pragma GCC unroll 4
    for (int64_t k = 0; k < kRegisters; ++k) {
      typename V::Doubles a, b;
      Load<V>(y + i + k * kLanes, a);
      Load<V>(r + i + k * kLanes, b);
      a -= b;
      not_finite[k] += a - a;  // NaN from the first difference on that is NaN or infinite
      MakeAbsolute<V>(a);
      MakeAbsolute<V>(b);
      const typename V::Doubles ratio = a / (offset + slope * b);
      largest[k] = ratio > largest[k] ? ratio : largest[k];  // false for 0 / 0
    }
  }
  double result = 0;
  double poison = 0;
  for (int64_t k = 0; k < kRegisters; ++k)
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      if (largest[k][lane] > result) result = largest[k][lane];
      poison += not_finite[k][lane];
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

// Multiplying by 2^112 moves float16's exponent range onto float's, denormals included; the top
// exponent, infinity and NaN, is set by hand.
inline float Float16ToFloat(uint16_t half) {
  const uint32_t magnitude = half & 0x7fffU;
  const uint32_t sign = (half & 0x8000U) << 16;
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112F;
  const uint32_t special = magnitude << 13 | 0x7f800000U;
  const uint32_t finite = std::bit_cast<uint32_t>(scaled);
  return std::bit_cast<float>(sign | (magnitude >= 0x7c00U ? special : finite));
}

void WidenPortably(const void* from, int64_t count, float* to) {
  const char* bytes = static_cast<const char*>(from);
  for (int64_t i = 0; i < count; ++i) {
    uint16_t half;
    std::memcpy(&half, bytes + 2 * i, sizeof(half));
    to[i] = Float16ToFloat(half);
  }
}

#if defined(__x86_64__)
__attribute__((target("avx2,f16c"))) void WidenByF16c(const void* from, int64_t count, float* to) {
  const char* bytes = static_cast<const char*>(from);
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    __m128i halves;
    std::memcpy(&halves, bytes + 2 * i, sizeof(halves));
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(halves));
  }
  WidenPortably(bytes + 2 * i, count - i, to + i);
}
#endif

// One set of instantiations a target: the bodies are inlined into functions that may use its
// instructions.
#define ASSAY_ROW_KERNELS(NAME, LANES, WIDEN, TARGET)                                            \
  struct NAME {                                                                                  \
    TARGET static void SumsFloat(const float* y, const float* r, int64_t n, RowSums* sums) {     \
      SumsBody<LANES>(y, r, n, sums);                                                            \
    }                                                                                            \
    TARGET static void SumsDouble(const double* y, const double* r, int64_t n, RowSums* sums) {  \
      SumsBody<LANES>(y, r, n, sums);                                                            \
    }                                                                                            \
    TARGET static double RatioFloat(const float* y, const float* r, int64_t n, double offset,    \
                                    double slope) {                                              \
      return RatioBody<LANES>(y, r, n, offset, slope);                                           \
    }                                                                                            \
    TARGET static double RatioDouble(const double* y, const double* r, int64_t n, double offset, \
                                     double slope) {                                             \
      return RatioBody<LANES>(y, r, n, offset, slope);                                           \
    }                                                                                            \
    static constexpr RowKernels kTable{WIDEN, SumsFloat, SumsDouble, RatioFloat, RatioDouble};   \
  };

ASSAY_ROW_KERNELS(Portable, TwoLanes, WidenPortably, )
#if defined(__x86_64__)
ASSAY_ROW_KERNELS(Avx2, FourLanes, WidenByF16c, __attribute__((target("avx2"))))
#endif

}  // namespace

const RowKernels& PortableKernels() { return Portable::kTable; }

const RowKernels& Kernels() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c")) return Avx2::kTable;
#endif
  return Portable::kTable;
}

}  // namespace assay
