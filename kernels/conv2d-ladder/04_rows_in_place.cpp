// The windows read in place.
//
// Idea: eight neighbouring pixels find their values four floats apart in a row of the input, so
// nothing is written out but the 33 rows under a row of pixels, once, with zeros beyond the borders
// (30 KB). The channels are the vectors; a value of the input is read into all lanes of one.
// Prediction: 130% of the library, which writes the windows out, or brings the input into another
// order first.
// Measured: 9.02 ms at the size of ladder-cpu.toml with one thread, 84.7% of the library.
#include <assay/kernel.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace {

// 16 floats; the compiler translates it for whatever vectors the machine has.
typedef float Vector __attribute__((vector_size(64)));
constexpr int64_t kLanes = 16, kVectors = 3, kChannels = kLanes * kVectors;
constexpr int64_t kPixels = 8;  // 24 sums of 16 channels in registers
constexpr int64_t kStride = 4, kPadding = 2;  // the problem's

struct Shape {
  int64_t channels_in, height, width, kernel, channels_out, out_height, out_width;
  int64_t pitch;  // floats of a copied row of the input
};

Shape ShapeOf(const assay::Tensor<const float, 4>& x, const assay::Tensor<const float, 4>& weight,
              const assay::Tensor<float, 4>& out) {
  const int64_t kernel = weight.size(2), out_width = out.size(3);
  return {x.size(1),   x.size(2), x.size(3), kernel, weight.size(0), out.size(2),
          out_width, (out_width + kPixels - 1) / kPixels * kPixels * kStride + kernel};
}

// Weights with all channels side by side: turned[k][channel], k counting the places of a window.
std::vector<float> Turn(const float* weight, int64_t channels, int64_t inner, int64_t pitch) {
  std::vector<float> turned(static_cast<size_t>(inner * pitch));
  for (int64_t channel = 0; channel < channels; ++channel)
    for (int64_t k = 0; k < inner; ++k)
      turned[static_cast<size_t>(k * pitch + channel)] = weight[channel * inner + k];
  return turned;
}

// Copies the rows of the input under a row of pixels, all channels, with zeros beyond the borders.
void CopyRows(const Shape& shape, const float* image, int64_t row, float* rows) {
  for (int64_t c = 0; c < shape.channels_in; ++c)
    for (int64_t r = 0; r < shape.kernel; ++r, rows += shape.pitch) {
      const int64_t from = row * kStride - kPadding + r;
      std::fill(rows, rows + shape.pitch, 0.0f);
      if (from < 0 || from >= shape.height) continue;
      const int64_t count = std::min(shape.width, shape.pitch - kPadding);
      std::copy_n(image + (c * shape.height + from) * shape.width, count, rows + kPadding);
    }
}

inline Vector Load(const float* from) {
  Vector value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Adds up 48 channels of eight neighbouring pixels, whose first window begins at `rows`.
void MultiplyTile(const Shape& shape, const float* rows, const float* weights, int64_t pitch,
                  float (&tile)[kPixels][kChannels]) {
  Vector sum[kPixels][kVectors] = {};
  for (int64_t row = 0; row < shape.channels_in * shape.kernel; ++row, rows += shape.pitch)
    for (int64_t s = 0; s < shape.kernel; ++s, weights += pitch) {
      Vector part[kVectors];
      for (int v = 0; v < kVectors; ++v) part[v] = Load(weights + v * kLanes);
      for (int i = 0; i < kPixels; ++i)
        for (int v = 0; v < kVectors; ++v) sum[i][v] += part[v] * rows[i * kStride + s];
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

// One row of pixels of the convolution: channel c's goes to `to` + c * `stride`.
void ConvolveRow(const Shape& shape, const float* rows, const float* turned, const float* bias,
                 float* to, int64_t stride) {
  const int64_t pitch = (shape.channels_out + kChannels - 1) / kChannels * kChannels;
  for (int64_t first = 0; first < shape.channels_out; first += kChannels)
    for (int64_t column = 0; column < shape.out_width; column += kPixels) {
      float tile[kPixels][kChannels];
      MultiplyTile(shape, rows + column * kStride, turned + first, pitch, tile);
      WriteTile(tile, bias + first, std::min(kChannels, shape.channels_out - first),
                std::min(kPixels, shape.out_width - column), to + first * stride + column, stride);
    }
}

}  // namespace

ASSAY_KERNEL(assay::Tensor<const float, 4> x, assay::Tensor<const float, 4> convolution_weight,
             assay::Tensor<const float, 1> convolution_bias, assay::Tensor<float, 4> out) {
  const Shape shape = ShapeOf(x, convolution_weight, out);
  const int64_t inner = shape.channels_in * shape.kernel * shape.kernel;
  const int64_t pitch = (shape.channels_out + kChannels - 1) / kChannels * kChannels;
  const std::vector<float> turned =
      Turn(convolution_weight.data(), shape.channels_out, inner, pitch);
  std::vector<float> rows(static_cast<size_t>(shape.channels_in * shape.kernel * shape.pitch));
  for (int64_t image = 0; image < x.size(0); ++image)
    for (int64_t row = 0; row < shape.out_height; ++row) {
      CopyRows(shape, x.data() + image * shape.channels_in * shape.height * shape.width, row,
               rows.data());
      float* const to = out.data() + (image * shape.channels_out * shape.out_height + row) *
                                         shape.out_width;
      ConvolveRow(shape, rows.data(), turned.data(), convolution_bias.data(), to,
                  shape.out_height * shape.out_width);
    }
}
