// The whole chain in register tiles: product, bias, GELU, scale and residual before the one store.
//
// Idea: a strip of 32 columns of the product needs 32 rows of the weights, 32 KiB: turned once, so
// that columns lie side by side, they stay in the L1 cache while all rows of x go by, eight at a
// time. Their sums fill 16 registers, so that two vectors of weights serve 16 multiplications, and
// GELU and residual work on the sums before they are stored. PyTorch's product is about as fast,
// but three more operators visit its result.
// expected: faster at small
#include <assay/kernel.h>

#include <algorithm>
#include <vector>

namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
constexpr int kRows = 8;  // of x in a tile: its sums take half of the registers
#elif defined(__AVX__)
constexpr int kLanes = 8;
constexpr int kRows = 4;
#else
constexpr int kLanes = 4;
constexpr int kRows = 4;
#endif
constexpr int kWide = 2;  // vectors of a strip
constexpr int kStrip = kWide * kLanes;
constexpr float kScale = 0.5f;  // SCALE of the problem file

typedef float Vector __attribute__((vector_size(4 * kLanes)));
typedef int32_t IntVector __attribute__((vector_size(4 * kLanes)));

Vector Load(const float* from) {
  Vector value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

void Store(float* to, Vector value) { __builtin_memcpy(to, &value, sizeof value); }

// GELU as in ../gelu/vectorised.cpp: log2 Phi(-|x|) by a polynomial, two to the power of that.
Vector Gelu(Vector x) {
  constexpr float kMost = 6.0f;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to a whole number
  const Vector magnitude = x < 0.0f ? -x : x;
  const Vector a = magnitude < kMost ? magnitude : Vector{} + kMost;
  Vector y = a * 4.7674561e-8f - 1.2988330e-6f;
  y = y * a + 1.2875854e-5f;
  y = y * a - 2.8012708e-5f;
  y = y * a - 6.1333796e-4f;
  y = y * a + 7.8504365e-3f;
  y = y * a - 5.3196304e-2f;
  y = y * a - 4.5890978e-1f;
  y = y * a - 1.1511488f;
  y = y * a - 1.0f;
  const Vector shifted = y + kRound;
  const Vector r = y - (shifted - kRound);
  Vector p = r * 1.5403530e-4f + 1.3333558e-3f;
  p = p * r + 9.6181291e-3f;
  p = p * r + 5.5504109e-2f;
  p = p * r + 2.4022651e-1f;
  p = p * r + 6.9314718e-1f;
  p = p * r + 1.0f;
  p *= reinterpret_cast<Vector>((reinterpret_cast<IntVector>(shifted) + 127) << 23);
  const Vector tail = magnitude < kMost ? p : Vector{};
  return x * (x < 0.0f ? tail : 1.0f - tail);
}

// kCount rows of x times a strip of the turned weights, then everything behind it. The result is a
// strip wide.
template <int kCount>
void Tile(const float* x, int64_t inputs, const float* strip, const float* bias,
          const float* residual, int64_t residual_stride, float* out, int64_t out_stride) {
  Vector sums[kCount][kWide];
  for (int row = 0; row < kCount; ++row) {
    for (int i = 0; i < kWide; ++i) sums[row][i] = Load(bias + i * kLanes);
  }
  for (int64_t input = 0; input < inputs; ++input, strip += kStrip) {
    const Vector left = Load(strip);
    const Vector right = Load(strip + kLanes);
#pragma GCC unroll 8
    for (int row = 0; row < kCount; ++row) {
      sums[row][0] += x[row * inputs + input] * left;
      sums[row][1] += x[row * inputs + input] * right;
    }
  }
  for (int row = 0; row < kCount; ++row) {
    for (int i = 0; i < kWide; ++i) {
      const Vector before = Load(residual + row * residual_stride + i * kLanes);
      Store(out + row * out_stride + i * kLanes, before + kScale * Gelu(sums[row][i]));
    }
  }
}

// One row of a strip that is not whole: by way of pieces that are.
void LastColumns(const float* x, int64_t inputs, const float* strip, const float* bias,
                 const float* residual, float* out, int64_t count) {
  float before[kStrip] = {};
  float result[kStrip];
  std::copy(residual, residual + count, before);
  Tile<1>(x, inputs, strip, bias, before, kStrip, result, kStrip);
  std::copy(result, result + count, out);
}

}  // namespace

ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<const float, 2> residual,
             assay::Tensor<const float, 2> linear_weight, assay::Tensor<const float, 1> linear_bias,
             assay::Tensor<float, 2> out) {
  const int64_t rows = x.size(0);
  const int64_t inputs = x.size(1);
  const int64_t outputs = out.size(1);
  std::vector<float> strip(static_cast<size_t>(inputs * kStrip));
  for (int64_t first = 0; first < outputs; first += kStrip) {
    const int64_t count = std::min<int64_t>(kStrip, outputs - first);
    float bias[kStrip] = {};
    std::copy(linear_bias.data() + first, linear_bias.data() + first + count, bias);
    for (int64_t column = 0; column < count; ++column) {
      const float* from = &linear_weight(first + column, 0);
      for (int64_t i = 0; i < inputs; ++i)
        strip[static_cast<size_t>(i * kStrip + column)] = from[i];
    }
    int64_t row = 0;
    for (; count == kStrip && row + kRows <= rows; row += kRows) {
      Tile<kRows>(&x(row, 0), inputs, strip.data(), bias, &residual(row, first), outputs,
                  &out(row, first), outputs);
    }
    for (; row < rows; ++row) {
      LastColumns(&x(row, 0), inputs, strip.data(), bias, &residual(row, first), &out(row, first),
                  count);
    }
  }
}
