// Two 3 x 3 convolutions, each with its norm folded into it, the skip and ReLU before the one
// store.
//
// Idea: normalisation by stored statistics is a factor and an offset a channel: the factor goes
// into the weights, the offset is where the sums begin. A tile of eight output channels and two
// vectors of a row stays in registers for all input channels and taps; the image is copied into a
// frame of zeros first, so that no tap asks whether it lies outside. PyTorch's convolutions are
// about as fast, but five more operators visit what they write.
// expected: faster at small
#include <assay/kernel.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
constexpr int kChannels = 8;  // output channels of a tile: its sums take half of the registers
#elif defined(__AVX__)
constexpr int kLanes = 8;
constexpr int kChannels = 4;
#else
constexpr int kLanes = 4;
constexpr int kChannels = 4;
#endif
constexpr int kWide = 2;  // vectors of a tile
constexpr int kTile = kWide * kLanes;
constexpr int64_t kKernel = 3;  // KERNEL of the problem file

typedef float Vector __attribute__((vector_size(4 * kLanes)));

Vector Load(const float* from) {
  Vector value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

// An image inside a frame of zeros: a pixel before and after each row and column, and behind each
// row as many as fill a tile.
struct Framed {
  int64_t channels, height, width;
  int64_t stride = (width + kTile - 1) / kTile * kTile + 2;
  std::vector<float> values = std::vector<float>(Count(), 0.0f);

  size_t Count() const { return static_cast<size_t>(channels * (height + 2) * stride); }
  float* Row(int64_t channel, int64_t row) {
    return values.data() + (channel * (height + 2) + row) * stride;
  }
};

// A convolution with its norm folded into it: for each input channel and tap the weights of all
// output channels, filled up with zeros to whole tiles.
struct Folded {
  int64_t channels;
  int64_t width = (channels + kChannels - 1) / kChannels * kChannels;
  std::vector<float> weights = std::vector<float>(Taps() * static_cast<size_t>(width), 0.0f);
  std::vector<float> offset = std::vector<float>(static_cast<size_t>(width), 0.0f);

  size_t Taps() const { return static_cast<size_t>(channels * kKernel * kKernel); }

  Folded(assay::Tensor<const float, 4> convolution, assay::Tensor<const float, 1> weight,
         assay::Tensor<const float, 1> bias, assay::Tensor<const float, 1> mean,
         assay::Tensor<const float, 1> variance)
      : channels(convolution.size(0)) {
    constexpr double kEpsilon = 1e-5;  // batch_norm's default
    for (int64_t to = 0; to < channels; ++to) {
      const double factor = weight(to) / std::sqrt(static_cast<double>(variance(to)) + kEpsilon);
      offset[static_cast<size_t>(to)] = static_cast<float>(bias(to) - mean(to) * factor);
      const float* from = convolution.data() + to * static_cast<int64_t>(Taps());
      for (size_t tap = 0; tap < Taps(); ++tap) {
        weights[tap * static_cast<size_t>(width) + static_cast<size_t>(to)] =
            static_cast<float>(from[tap] * factor);
      }
    }
  }
};

// kChannels output channels of one tile of a row, before ReLU.
void Tile(Framed& image, const Folded& folded, int64_t channel, int64_t row, int64_t column,
          float (&results)[kChannels][kTile]) {
  Vector sums[kChannels][kWide];
  for (int to = 0; to < kChannels; ++to) {
    for (int i = 0; i < kWide; ++i) {
      sums[to][i] = Vector{} + folded.offset[static_cast<size_t>(channel + to)];
    }
  }
  const float* weights = folded.weights.data() + channel;
  for (int64_t from = 0; from < image.channels; ++from) {
    for (int64_t i = 0; i < kKernel; ++i) {
      const float* values = image.Row(from, row + i) + column;
#pragma GCC unroll 3
      for (int64_t j = 0; j < kKernel; ++j, weights += folded.width) {
        const Vector left = Load(values + j);
        const Vector right = Load(values + j + kLanes);
#pragma GCC unroll 8
        for (int to = 0; to < kChannels; ++to) {
          sums[to][0] += weights[to] * left;
          sums[to][1] += weights[to] * right;
        }
      }
    }
  }
  __builtin_memcpy(results, sums, sizeof sums);
}

// NaN stays, as it does in torch.relu.
float Relu(float value) { return value < 0.0f ? 0.0f : value; }

// Calls use(channel, row, column, count, values) for every piece of a row.
template <typename Use>
void Convolve(Framed& image, const Folded& folded, const Use& use) {
  for (int64_t channel = 0; channel < folded.channels; channel += kChannels) {
    const int64_t channels = std::min<int64_t>(kChannels, folded.channels - channel);
    for (int64_t row = 0; row < image.height; ++row) {
      for (int64_t column = 0; column < image.width; column += kTile) {
        float results[kChannels][kTile];
        Tile(image, folded, channel, row, column, results);
        const int64_t count = std::min<int64_t>(kTile, image.width - column);
        for (int64_t to = 0; to < channels; ++to) {
          use(channel + to, row, column, count, results[to]);
        }
      }
    }
  }
}

}  // namespace

ASSAY_KERNEL(assay::Tensor<const float, 4> x, assay::Tensor<const float, 4> first_weight,
             assay::Tensor<const float, 1> first_norm_weight,
             assay::Tensor<const float, 1> first_norm_bias,
             assay::Tensor<const float, 1> first_norm_mean,
             assay::Tensor<const float, 1> first_norm_variance,
             assay::Tensor<const float, 4> second_weight,
             assay::Tensor<const float, 1> second_norm_weight,
             assay::Tensor<const float, 1> second_norm_bias,
             assay::Tensor<const float, 1> second_norm_mean,
             assay::Tensor<const float, 1> second_norm_variance, assay::Tensor<float, 4> out) {
  const Folded first(first_weight, first_norm_weight, first_norm_bias, first_norm_mean,
                     first_norm_variance);
  const Folded second(second_weight, second_norm_weight, second_norm_bias, second_norm_mean,
                      second_norm_variance);
  Framed image{x.size(1), x.size(2), x.size(3)};
  Framed inner{x.size(1), x.size(2), x.size(3)};
  for (int64_t number = 0; number < x.size(0); ++number) {
    for (int64_t channel = 0; channel < image.channels; ++channel) {
      for (int64_t row = 0; row < image.height; ++row) {
        const float* from = &x(number, channel, row, 0);
        std::copy(from, from + image.width, image.Row(channel, row + 1) + 1);
      }
    }
    Convolve(image, first,
             [&](int64_t channel, int64_t row, int64_t column, int64_t count, const float* values) {
               float* to = inner.Row(channel, row + 1) + column + 1;
               for (int64_t i = 0; i < count; ++i) to[i] = Relu(values[i]);
             });
    Convolve(inner, second,
             [&](int64_t channel, int64_t row, int64_t column, int64_t count, const float* values) {
               const float* skipped = &x(number, channel, row, column);
               float* to = &out(number, channel, row, column);
               for (int64_t i = 0; i < count; ++i) to[i] = Relu(skipped[i] + values[i]);
             });
  }
}
