// GELU by the C library's complementary error function.
//
// Idea: x Phi(x) = x erfc(-x / sqrt 2) / 2 keeps its digits for negative x, where 1 + erf(x / sqrt
// 2) cancels. The compiler cannot vectorise a call to the library.
// expected: slower at small
#include <assay/kernel.h>

#include <cmath>

ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<float, 2> out) {
  constexpr float kMinusSqrtHalf = -0.70710678f;
  const int64_t count = x.count();
  for (int64_t i = 0; i < count; ++i) {
    const float value = x.data()[i];
    out.data()[i] = 0.5f * value * std::erfc(value * kMinusSqrtHalf);
  }
}
