// Convolution by its definition, a row of the output at a time.
//
// Idea: for each weight, a shifted row of the input times that weight is added to the row of the
// output; only the part that lies inside the image is visited, so the zero padding costs nothing.
// PyTorch reuses each value in registers.
// expected: slower at small
#include <assay/kernel.h>

#include <algorithm>

ASSAY_KERNEL(assay::Tensor<const float, 4> x, assay::Tensor<const float, 4> convolution_weight,
             assay::Tensor<const float, 1> convolution_bias, assay::Tensor<float, 4> out) {
  const int64_t channels_in = x.size(1);
  const int64_t height = x.size(2);
  const int64_t width = x.size(3);
  const int64_t kernel = convolution_weight.size(2);
  const int64_t padding = kernel / 2;
  for (int64_t image = 0; image < out.size(0); ++image) {
    for (int64_t channel = 0; channel < out.size(1); ++channel) {
      for (int64_t row = 0; row < height; ++row) {
        float* __restrict__ sums = &out(image, channel, row, 0);
        std::fill(sums, sums + width, convolution_bias(channel));
        for (int64_t from = 0; from < channels_in; ++from) {
          for (int64_t i = 0; i < kernel; ++i) {
            const int64_t source = row + i - padding;
            if (source < 0 || source >= height) continue;
            for (int64_t j = 0; j < kernel; ++j) {
              const float factor = convolution_weight(channel, from, i, j);
              const int64_t shift = j - padding;
              const int64_t first = std::max<int64_t>(0, -shift);
              const int64_t last = std::min(width, width - shift);
              const float* values =
                  x.data() + ((image * channels_in + from) * height + source) * width;
              for (int64_t column = first; column < last; ++column) {
                sums[column] += factor * values[column + shift];
              }
            }
          }
        }
      }
    }
  }
}
