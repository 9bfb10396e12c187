// Convolution on a CPU by its definition.
//
// Idea: for each element of the result, the sum over its window; the borders are tested each time.
// Prediction: 4% of the library. One chain of additions that wait for each other, 4 clocks each.
// Measured: 404 ms at the size of ladder-cpu.toml with one thread, 1.6% of the library.
#include <assay/kernel.h>

namespace {
constexpr int64_t kStride = 4, kPadding = 2;  // the problem's
}

ASSAY_KERNEL(assay::Tensor<const float, 4> x, assay::Tensor<const float, 4> convolution_weight,
             assay::Tensor<const float, 1> convolution_bias, assay::Tensor<float, 4> out) {
  const int64_t channels_in = x.size(1), height = x.size(2), width = x.size(3);
  const int64_t kernel = convolution_weight.size(2);
  for (int64_t image = 0; image < out.size(0); ++image)
    for (int64_t channel = 0; channel < out.size(1); ++channel)
      for (int64_t row = 0; row < out.size(2); ++row)
        for (int64_t column = 0; column < out.size(3); ++column) {
          float sum = convolution_bias(channel);
          for (int64_t c = 0; c < channels_in; ++c)
            for (int64_t r = 0; r < kernel; ++r)
              for (int64_t s = 0; s < kernel; ++s) {
                const int64_t at_row = row * kStride - kPadding + r;
                const int64_t at_column = column * kStride - kPadding + s;
                if (at_row < 0 || at_row >= height || at_column < 0 || at_column >= width) continue;
                sum += convolution_weight(channel, c, r, s) * x(image, c, at_row, at_column);
              }
          out(image, channel, row, column) = sum;
        }
}
