// A matrix times a vector in NVFP4 on a CPU, the formula.
//
// Idea: none; the starting point. Each code becomes a float by arithmetic, for each product anew.
// Prediction: 30% of the library.
// Measured: 35.7 ms at the size of ladder-cpu.toml with one thread, 81.3% of the library.

#include <assay/kernel.h>

#include <cmath>

using assay::bfloat16;
using assay::Tensor;

namespace {

// e2m1: a sign, two bits of exponent, one of mantissa.
float NumberOf(int code) {
  const int exponent = code >> 1 & 3, bit = code & 1;
  const float size =
      exponent == 0 ? 0.5f * static_cast<float>(bit) : std::ldexp(2.0f + bit, exponent - 2);
  return code & 8 ? -size : size;
}

// e4m3.
float ScaleOf(int code) {
  const int exponent = code >> 3 & 15, bits = code & 7;
  const float size = exponent == 0 ? std::ldexp(static_cast<float>(bits), -9)
                                   : std::ldexp(8.0f + bits, exponent - 10);
  return code & 128 ? -size : size;
}

}  // namespace

ASSAY_KERNEL(Tensor<const uint8_t, 3> packed, Tensor<const uint8_t, 3> scales,
             Tensor<const uint8_t, 2> x_packed, Tensor<const uint8_t, 2> x_scales,
             Tensor<const bfloat16, 1> factor, Tensor<bfloat16, 2> out) {
  for (int64_t b = 0; b < out.size(0); ++b)
    for (int64_t row = 0; row < out.size(1); ++row) {
      float sum = 0;
      for (int64_t block = 0; block < scales.size(2); ++block) {
        float part = 0;
        for (int64_t i = 8 * block; i < 8 * block + 8; ++i) {
          const int two = packed(b, row, i), others = x_packed(b, i);
          part += NumberOf(two & 15) * NumberOf(others & 15);
          part += NumberOf(two >> 4) * NumberOf(others >> 4);
        }
        sum += part * ScaleOf(scales(b, row, block)) * ScaleOf(x_scales(b, block));
      }
      out(b, row) = sum * static_cast<float>(factor(b));
    }
}
