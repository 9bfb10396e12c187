// RMSNorm in bfloat16 on a CPU, two loops a row.
//
// Idea: none; the starting point. Values become floats one by one, and the sum is one chain of
// additions.
// Prediction: 25% of the library.
// Measured: 4.08 ms at the size of ladder-cpu.toml with one thread, 80.3% of the library.

#include <assay/kernel.h>

#include <cmath>

constexpr float kEpsilon = 1e-6f;  // EPSILON of the problem file

ASSAY_KERNEL(assay::Tensor<const assay::bfloat16, 2> x,
             assay::Tensor<const assay::bfloat16, 1> weight,
             assay::Tensor<assay::bfloat16, 2> out) {
  const int64_t rows = x.size(0), columns = x.size(1);
  const assay::bfloat16* weights = weight.data();
  for (int64_t row = 0; row < rows; ++row) {
    const assay::bfloat16* from = x.data() + row * columns;
    assay::bfloat16* to = out.data() + row * columns;
    float squares = 0;
    for (int64_t i = 0; i < columns; ++i) {
      const float value = from[i];
      squares += value * value;
    }
    const float scale = 1 / std::sqrt(squares / static_cast<float>(columns) + kEpsilon);
    for (int64_t i = 0; i < columns; ++i)
      to[i] = static_cast<float>(from[i]) * scale * static_cast<float>(weights[i]);
  }
}
