// Weights of four bits on a CPU, the formula.
//
// Idea: none; the starting point. Each weight is decoded where it is used: its four bits, less the
// zero of its group, times the group's scale. No weight is written.
// Prediction: 150% of the library, which writes the decoded weights in five passes, on all threads.
// Measured: 9.27 ms at the size of ladder-cpu.toml with one thread, 87.9% of the library.

#include <assay/kernel.h>

using assay::bfloat16;
using assay::Tensor;

ASSAY_KERNEL(Tensor<const bfloat16, 2> x, Tensor<const uint8_t, 2> packed,
             Tensor<const bfloat16, 2> scales, Tensor<const uint8_t, 2> zeros,
             Tensor<bfloat16, 2> out) {
  const int64_t features = x.size(1), group = features / scales.size(1);
  for (int64_t row = 0; row < out.size(0); ++row)
    for (int64_t output = 0; output < out.size(1); ++output) {
      float sum = 0;
      for (int64_t i = 0; i < features; ++i) {
        const int byte = packed(output, i / 2);
        const int code = i % 2 == 0 ? byte & 15 : byte >> 4;
        const int difference = code - zeros(output, i / group);
        const float weight =
            static_cast<float>(difference) * static_cast<float>(scales(output, i / group));
        sum += weight * static_cast<float>(x(row, i));
      }
      out(row, output) = sum;
    }
}
