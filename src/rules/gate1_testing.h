// Makes outputs for gate 1's tests: results of small programs with a reference and a float64 truth.
// Test code only.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "rules/gate1.h"

namespace assay {

struct TestOutput {
  std::vector<int64_t> shape;
  std::vector<float> candidate;
  std::vector<float> reference;
  std::vector<double> truth;
  double ordinary_scale = 0;

  OutputView View() const {
    OutputView view;
    view.name = "out";
    view.dtype = DType::kFloat32;
    view.shape = shape;
    view.count = static_cast<int64_t>(reference.size());
    view.candidate = candidate.data();
    view.reference = reference.data();
    view.oracle = truth.data();
    view.ordinary_scale = ordinary_scale;
    return view;
  }
};

inline std::vector<float> NormalDraw(size_t count, uint32_t seed, double mean = 0,
                                     double deviation = 1) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal(mean, deviation);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(normal(generator));
  return values;
}

inline std::vector<float> UniformDraw(size_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(uniform(generator));
  return values;
}

// Rounds to nearest even at `bits` significant bits: 11 for tf32 and float16, 8 for bfloat16.
// Ignores float16's narrow range.
inline float RoundToBits(float value, int bits) {
  uint32_t pattern;
  std::memcpy(&pattern, &value, sizeof(pattern));
  const int dropped = 24 - bits;
  const uint32_t half = (1U << (dropped - 1)) - 1 + ((pattern >> dropped) & 1U);
  pattern = (pattern + half) & ~((1U << dropped) - 1);
  std::memcpy(&value, &pattern, sizeof(value));
  return value;
}

inline std::vector<float> RoundToBits(std::vector<float> values, int bits) {
  for (float& value : values) value = RoundToBits(value, bits);
  return values;
}

inline uint16_t ToBFloat16(float value) {
  const float rounded = RoundToBits(value, 8);
  uint32_t pattern;
  std::memcpy(&pattern, &rounded, sizeof(pattern));
  return static_cast<uint16_t>(pattern >> 16);
}

// Rounds to nearest even, with denormals, and with overflow to infinity; NaN stays NaN.
inline uint16_t ToFloat16(double value) {
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const double size = std::fabs(value);
  if (std::isnan(value)) return static_cast<uint16_t>(sign | 0x7e00);
  if (size < 0x1p-14)
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(size * 0x1p24)));
  const int exponent = std::isinf(value) ? 16 : std::ilogb(size);
  const double mantissa =
      std::isinf(value) ? 1024 : std::nearbyint(std::ldexp(size, 10 - exponent));
  const int bits = (exponent + 15) * 1024 + static_cast<int>(mantissa) - 1024;
  return static_cast<uint16_t>(sign | (bits >= 0x7c00 ? 0x7c00 : bits));
}

}  // namespace assay
