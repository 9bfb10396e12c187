// The whole chain an element at a time: dot product, bias, GELU, scale and residual before the one
// store.
//
// Idea: what the linear layer computes never goes through memory. The flags let the compiler
// reorder the additions of a dot product, without which it stays scalar. PyTorch's product is
// blocked, which outweighs that it visits memory four times more.
// expected: slower at small
//! flags -fassociative-math -fno-signed-zeros -fno-trapping-math -fno-math-errno
#include <assay/kernel.h>

#include <cmath>

ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<const float, 2> residual,
             assay::Tensor<const float, 2> linear_weight, assay::Tensor<const float, 1> linear_bias,
             assay::Tensor<float, 2> out) {
  constexpr float kScale = 0.5f;  // SCALE of the problem file
  constexpr float kMinusSqrtHalf = -0.70710678f;
  const int64_t rows = x.size(0);
  const int64_t features_in = x.size(1);
  const int64_t features_out = out.size(1);
  for (int64_t row = 0; row < rows; ++row) {
    const float* values = x.data() + row * features_in;
    for (int64_t column = 0; column < features_out; ++column) {
      const float* weights = linear_weight.data() + column * features_in;
      float sum = 0;
      for (int64_t i = 0; i < features_in; ++i) sum += values[i] * weights[i];
      sum += linear_bias(column);
      const float gelu = 0.5f * sum * std::erfc(sum * kMinusSqrtHalf);
      out(row, column) = residual(row, column) + kScale * gelu;
    }
  }
}
