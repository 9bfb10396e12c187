// The product of two matrices, with the windows written out (im2col) eight pixels at a time.
//
// Idea: sums stay in registers: eight pixels by 48 channels are 24 vectors of AVX-512. For them the
// windows of eight pixels are copied into a block of k x 8 (12 KB, which the first cache holds),
// and an ordinary kernel of a matrix product runs over it.
// Prediction: 90% of the library. Of 11 loads and 24 multiplies a k the multiplies bind; writing a
// value of the windows out costs as much as two of the 24, and its test of the border more.
// Measured: 44.6 ms at the size of ladder-cpu.toml with one thread, 17.6% of the library.
#include <assay/kernel.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace {

constexpr int64_t kStride = 4, kPadding = 2;  // the problem's
// 16 floats; the compiler translates it for whatever vectors the machine has.
typedef float Vector __attribute__((vector_size(64)));
constexpr int64_t kLanes = 16, kVectors = 3, kChannels = kLanes * kVectors;
constexpr int64_t kPixels = 8;  // 24 sums of 16 channels in registers

// Weights with all channels side by side: turned[k][channel], k counting the places of a window.
std::vector<float> Turn(const float* weight, int64_t channels, int64_t inner, int64_t pitch) {
  std::vector<float> turned(static_cast<size_t>(inner * pitch));
  for (int64_t channel = 0; channel < channels; ++channel)
    for (int64_t k = 0; k < inner; ++k)
      turned[static_cast<size_t>(k * pitch + channel)] = weight[channel * inner + k];
  return turned;
}

inline Vector Load(const float* from) {
  Vector value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Adds up 48 channels of eight pixels. Value k of pixel i is windows[k * kPixels + i].
void MultiplyTile(const float* windows, const float* weights, int64_t inner, int64_t pitch,
                  float (&tile)[kPixels][kChannels]) {
  Vector sum[kPixels][kVectors] = {};
  for (int64_t k = 0; k < inner; ++k) {
    Vector part[kVectors];
    for (int v = 0; v < kVectors; ++v) part[v] = Load(weights + k * pitch + v * kLanes);
    for (int i = 0; i < kPixels; ++i)
      for (int v = 0; v < kVectors; ++v) sum[i][v] += part[v] * windows[k * kPixels + i];
  }
  std::memcpy(tile, sum, sizeof sum);
}

// Writes the pixels that there are, channel by channel.
void WriteTile(const float (&tile)[kPixels][kChannels], const float* bias, int64_t channels,
               int64_t pixels, float* to, int64_t stride) {
  for (int64_t channel = 0; channel < channels; ++channel)
    for (int64_t i = 0; i < pixels; ++i)
      to[channel * stride + i] = tile[i][channel] + bias[channel];
}

}  // namespace

ASSAY_KERNEL(assay::Tensor<const float, 4> x, assay::Tensor<const float, 4> convolution_weight,
             assay::Tensor<const float, 1> convolution_bias, assay::Tensor<float, 4> out) {
  const int64_t channels_in = x.size(1), height = x.size(2), width = x.size(3);
  const int64_t kernel = convolution_weight.size(2), channels = out.size(1);
  const int64_t inner = channels_in * kernel * kernel;
  const int64_t pitch = (channels + kChannels - 1) / kChannels * kChannels;
  const int64_t plane = out.size(2) * out.size(3), out_width = out.size(3);
  const std::vector<float> turned = Turn(convolution_weight.data(), channels, inner, pitch);
  std::vector<float> windows(static_cast<size_t>(inner * kPixels));
  for (int64_t image = 0; image < out.size(0); ++image)
    for (int64_t pixel = 0; pixel < plane; pixel += kPixels) {
      const int64_t pixels = std::min(kPixels, plane - pixel);
      for (int64_t k = 0; k < inner; ++k)
        for (int64_t i = 0; i < pixels; ++i) {
          const int64_t row = (pixel + i) / out_width * kStride - kPadding + k / kernel % kernel;
          const int64_t column = (pixel + i) % out_width * kStride - kPadding + k % kernel;
          const bool inside = row >= 0 && row < height && column >= 0 && column < width;
          windows[static_cast<size_t>(k * kPixels + i)] =
              inside ? x(image, k / (kernel * kernel), row, column) : 0;
        }
      for (int64_t first = 0; first < channels; first += kChannels) {
        float tile[kPixels][kChannels];
        MultiplyTile(windows.data(), turned.data() + first, inner, pitch, tile);
        WriteTile(tile, convolution_bias.data() + first, std::min(kChannels, channels - first),
                  pixels, &out(image, first, 0, 0) + pixel, plane);
      }
    }
}
