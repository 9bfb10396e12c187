// Layer normalisation in three loops over each row.
//
// Idea: mean first, then the variance of what is left, both added up in double: values around 1000
// that differ by 0.1 keep their digits, which the shortcut E[x^2] - E[x]^2 loses. PyTorch's
// sums are vectorised, these are not.
// expected: slower at small
#include <assay/kernel.h>

#include <cmath>

ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<const float, 1> norm_weight,
             assay::Tensor<const float, 1> norm_bias, assay::Tensor<float, 2> out) {
  constexpr double kEpsilon = 1e-5;  // nn.LayerNorm's default
  const int64_t rows = x.size(0);
  const int64_t features = x.size(1);
  for (int64_t row = 0; row < rows; ++row) {
    double mean = 0;
    for (int64_t i = 0; i < features; ++i) mean += x(row, i);
    mean /= static_cast<double>(features);
    double variance = 0;
    for (int64_t i = 0; i < features; ++i) variance += (x(row, i) - mean) * (x(row, i) - mean);
    variance /= static_cast<double>(features);
    const double factor = 1 / std::sqrt(variance + kEpsilon);
    for (int64_t i = 0; i < features; ++i) {
      const auto normal = static_cast<float>((x(row, i) - mean) * factor);
      out(row, i) = normal * norm_weight(i) + norm_bias(i);
    }
  }
}
