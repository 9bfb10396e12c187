// LayerNorm on a CPU, three loops a row.
//
// Idea: none; the starting point: the mean, the variance, the result. Sums are double, as a float
// cannot count a million values around 1000; the compiler may not reorder them, so it cannot
// vectorise.
// Prediction: 25% of the library: two chains of additions of 4 cycles a value.
// Measured: 2.66 ms at the size of ladder-cpu.toml with one thread, 68.8% of the library.

#include <assay/kernel.h>

#include <cmath>

constexpr double kEpsilon = 1e-5;  // nn.LayerNorm's default

ASSAY_KERNEL(assay::Tensor<const float, 4> x, assay::Tensor<const float, 3> norm_weight,
             assay::Tensor<const float, 3> norm_bias, assay::Tensor<float, 4> out) {
  const int64_t rows = x.size(0), columns = norm_weight.count();
  const float *weight = norm_weight.data(), *bias = norm_bias.data();
  for (int64_t row = 0; row < rows; ++row) {
    const float* from = x.data() + row * columns;
    float* to = out.data() + row * columns;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < columns; ++i) sum += static_cast<double>(from[i]);
    const auto mean = static_cast<float>(sum / static_cast<double>(columns));
    for (int64_t i = 0; i < columns; ++i) {
      const float distance = from[i] - mean;
      squares += static_cast<double>(distance * distance);
    }
    const auto scale =
        static_cast<float>(1 / std::sqrt(squares / static_cast<double>(columns) + kEpsilon));
    for (int64_t i = 0; i < columns; ++i) to[i] = (from[i] - mean) * scale * weight[i] + bias[i];
  }
}
