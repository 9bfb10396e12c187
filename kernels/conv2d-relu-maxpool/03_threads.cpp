// Strips of images shared out to threads.
//
// Idea: a strip is nine rows of results; at its beginning one row of the convolution is computed a
// second time, 1 of 19. Each thread has a ring and a copy of the rows of the input of its own.
// Prediction: 145% of the library, which has as many threads.
// Measured: 9.67 ms at the size of ladder-cpu.toml with one thread, 210.0% of the library.
//! flags -fopenmp
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
constexpr int64_t kPool = 3, kPoolStride = 2;

struct Shape {
  int64_t channels_in, height, width, kernel, channels_out, out_height, out_width;
  int64_t pitch;  // floats of a copied row of the input
};

// out_height and out_width are those of the convolution, as far as windows reach.
Shape ShapeOf(const assay::Tensor<const float, 4>& x, const assay::Tensor<const float, 4>& weight,
              const assay::Tensor<float, 4>& out) {
  const int64_t kernel = weight.size(2);
  const int64_t out_height = (out.size(2) - 1) * kPoolStride + kPool;
  const int64_t out_width = (out.size(3) - 1) * kPoolStride + kPool;
  return {x.size(1),   x.size(2), x.size(3), kernel, weight.size(0), out_height,
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

// The larger one, or NaN if one of them is.
inline float MaxOrNaN(float a, float b) { return ((a > b) | (a != a)) ? a : b; }

// The largest of each window of a row of results, or 0 where none is positive. A channel has three
// rows of values; once the ring has turned, lower ones stand before upper ones, which a largest
// value does not mind. `columns` holds the largest of each column meanwhile.
void PoolRow(const float* values, int64_t width, float* columns, float* out, int64_t out_width) {
  for (int64_t i = 0; i < width; ++i)
    columns[i] =
        MaxOrNaN(0, MaxOrNaN(values[i], MaxOrNaN(values[width + i], values[2 * width + i])));
  for (int64_t i = 0; i < out_width; ++i) {
    const float* const first = columns + i * kPoolStride;
    out[i] = MaxOrNaN(first[0], MaxOrNaN(first[1], first[2]));
  }
}

// One strip: rows `begin` to `end` of an image's results.
struct Strip {
  int64_t image, begin, end;
};

void ComputeStrip(const Shape& shape, const Strip& strip, const float* x, const float* turned,
                  const float* bias, float* rows, float* values, float* out, int64_t out_height,
                  int64_t out_width) {
  const float* const image =
      x + strip.image * shape.channels_in * shape.height * shape.width;
  const int64_t stride = kPool * shape.out_width;  // of a channel's three rows
  int64_t next = strip.begin * kPoolStride;        // row of the convolution to compute
  for (int64_t row = strip.begin; row < strip.end; ++row) {
    for (; next < row * kPoolStride + kPool; ++next) {
      CopyRows(shape, image, next, rows);
      ConvolveRow(shape, rows, turned, bias, values + next % kPool * shape.out_width, stride);
    }
    for (int64_t channel = 0; channel < shape.channels_out; ++channel)
      PoolRow(values + channel * stride, shape.out_width, values + shape.channels_out * stride,
              out + ((strip.image * shape.channels_out + channel) * out_height + row) * out_width,
              out_width);
  }
}

constexpr int64_t kStripRows = 9;

}  // namespace

ASSAY_KERNEL(assay::Tensor<const float, 4> x, assay::Tensor<const float, 4> convolution_weight,
             assay::Tensor<const float, 1> convolution_bias, assay::Tensor<float, 4> out) {
  const Shape shape = ShapeOf(x, convolution_weight, out);
  const int64_t inner = shape.channels_in * shape.kernel * shape.kernel;
  const int64_t pitch = (shape.channels_out + kChannels - 1) / kChannels * kChannels;
  const std::vector<float> turned =
      Turn(convolution_weight.data(), shape.channels_out, inner, pitch);
  // Three rows a channel, and one for PoolRow.
  const int64_t ring = (shape.channels_out * kPool + 1) * shape.out_width;
  const int64_t images = x.size(0), out_height = out.size(2);
#pragma omp parallel
  {
    std::vector<float> rows(static_cast<size_t>(shape.channels_in * shape.kernel * shape.pitch));
    std::vector<float> values(static_cast<size_t>(ring));
#pragma omp for collapse(2) schedule(dynamic)
    for (int64_t image = 0; image < images; ++image)
      for (int64_t row = 0; row < out_height; row += kStripRows)
        ComputeStrip(shape, {image, row, std::min(row + kStripRows, out_height)}, x.data(),
                     turned.data(), convolution_bias.data(), rows.data(), values.data(), out.data(),
                     out_height, out.size(3));
  }
}
