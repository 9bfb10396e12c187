// Channels in the innermost loop.
//
// Idea: the weights are turned, once a call, so that all channels of a place of the window lie side
// by side; a value of the input times them is added to all sums of the pixel. The additions do not
// wait for each other, and the compiler makes vectors of them.
// Prediction: 30% of the library. Each vector of sums is loaded and stored for every multiply.
// Measured: 62.6 ms at the size of ladder-cpu.toml with one thread, 11.9% of the library.
#include <assay/kernel.h>

#include <algorithm>
#include <vector>

namespace {

constexpr int64_t kStride = 4, kPadding = 2;  // the problem's

// Weights with all channels side by side: turned[k][channel], k counting the places of a window.
std::vector<float> Turn(const float* weight, int64_t channels, int64_t inner, int64_t pitch) {
  std::vector<float> turned(static_cast<size_t>(inner * pitch));
  for (int64_t channel = 0; channel < channels; ++channel)
    for (int64_t k = 0; k < inner; ++k)
      turned[static_cast<size_t>(k * pitch + channel)] = weight[channel * inner + k];
  return turned;
}

}  // namespace

ASSAY_KERNEL(assay::Tensor<const float, 4> x, assay::Tensor<const float, 4> convolution_weight,
             assay::Tensor<const float, 1> convolution_bias, assay::Tensor<float, 4> out) {
  const int64_t channels_in = x.size(1), height = x.size(2), width = x.size(3);
  const int64_t kernel = convolution_weight.size(2), channels = out.size(1);
  const std::vector<float> turned = Turn(convolution_weight.data(), channels,
                                         channels_in * kernel * kernel, channels);
  std::vector<float> buffer(static_cast<size_t>(channels));
  float* const sums = buffer.data();
  for (int64_t image = 0; image < out.size(0); ++image)
    for (int64_t row = 0; row < out.size(2); ++row)
      for (int64_t column = 0; column < out.size(3); ++column) {
        std::copy_n(convolution_bias.data(), channels, sums);
        for (int64_t k = 0; k < channels_in * kernel * kernel; ++k) {
          const int64_t at_row = row * kStride - kPadding + k / kernel % kernel;
          const int64_t at_column = column * kStride - kPadding + k % kernel;
          if (at_row < 0 || at_row >= height || at_column < 0 || at_column >= width) continue;
          const float value = x(image, k / (kernel * kernel), at_row, at_column);
          const float* const weights = turned.data() + k * channels;
          for (int64_t channel = 0; channel < channels; ++channel)
            sums[channel] += weights[channel] * value;
        }
        for (int64_t channel = 0; channel < channels; ++channel)
          out(image, channel, row, column) = sums[channel];
      }
}
