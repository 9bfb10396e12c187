// A matrix times a vector in NVFP4 on a CPU, tables.
//
// Idea: codes are places in tables: of 256 bytes' two numbers, and of 256 scales. x is unpacked
// once.
// Prediction: 200% of the library.
// Measured: 860 us at the size of ladder-cpu.toml with one thread, 3533.5% of the library.

#include <assay/kernel.h>

#include <cmath>
#include <vector>

using assay::bfloat16;
using assay::Tensor;

namespace {

constexpr float kSizes[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};

float NumberOf(int code) { return code & 8 ? -kSizes[code & 7] : kSizes[code & 7]; }

float ScaleOf(int code) {
  const int exponent = code >> 3 & 15, bits = code & 7;
  const float size = exponent == 0 ? std::ldexp(static_cast<float>(bits), -9)
                                   : std::ldexp(8.0f + bits, exponent - 10);
  return code & 128 ? -size : size;
}

struct Tables {
  float numbers[256][2], scales[256];

  Tables() {
    for (int code = 0; code < 256; ++code) {
      numbers[code][0] = NumberOf(code & 15), numbers[code][1] = NumberOf(code >> 4);
      scales[code] = ScaleOf(code);
    }
  }
};

}  // namespace

ASSAY_KERNEL(Tensor<const uint8_t, 3> packed, Tensor<const uint8_t, 3> scales,
             Tensor<const uint8_t, 2> x_packed, Tensor<const uint8_t, 2> x_scales,
             Tensor<const bfloat16, 1> factor, Tensor<bfloat16, 2> out) {
  static const Tables tables;
  const int64_t bytes = packed.size(2), blocks = scales.size(2);
  std::vector<float> x(2 * bytes);
  for (int64_t b = 0; b < out.size(0); ++b) {
    for (int64_t i = 0; i < bytes; ++i) {
      const float scale = tables.scales[x_scales(b, i / 8)];
      x[2 * i] = tables.numbers[x_packed(b, i)][0] * scale;
      x[2 * i + 1] = tables.numbers[x_packed(b, i)][1] * scale;
    }
    for (int64_t row = 0; row < out.size(1); ++row) {
      const uint8_t* const codes = packed.data() + (b * out.size(1) + row) * bytes;
      const uint8_t* const its_scales = scales.data() + (b * out.size(1) + row) * blocks;
      float sum = 0;
      for (int64_t block = 0; block < blocks; ++block) {
        float low = 0, high = 0;
        for (int64_t i = 8 * block; i < 8 * block + 8; ++i) {
          low += tables.numbers[codes[i]][0] * x[2 * i];
          high += tables.numbers[codes[i]][1] * x[2 * i + 1];
        }
        sum += (low + high) * tables.scales[its_scales[block]];
      }
      out(b, row) = sum * static_cast<float>(factor(b));
    }
  }
}
