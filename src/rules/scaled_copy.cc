#include "rules/scaled_copy.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "rules/elements.h"
#include "wire/types.h"

namespace assay {
namespace {

// Beyond every bound of gate 1, relative to the output's root mean square.
constexpr double kFarOff = 0.25;
// Of float64, beside sums of products; far below a term that a candidate could leave out.
constexpr double kRounding64 = 1e-9;

using Chunk = std::array<double, kChunkElements>;

// Calls `see(output, input)` for each element; the truth stands for the output if it is known.
// Returns false as soon as `see` does.
template <typename See>
bool ForEachPair(const CopyView& view, const See& see) {
  Chunk output, input;
  for (int64_t begin = 0; begin < view.count; begin += kChunkElements) {
    const int64_t count = std::min(kChunkElements, view.count - begin);
    LoadAsDouble(view.input_dtype, view.input, begin, count, input.data());
    if (view.truth != nullptr)
      std::copy_n(view.truth + begin, count, output.data());
    else
      LoadAsDouble(view.output_dtype, view.output, begin, count, output.data());
    for (size_t i = 0; i < static_cast<size_t>(count); ++i)
      if (!see(output[i], input[i])) return false;
  }
  return true;
}

// A short floating-point format; bits of its mantissa, its smallest exponent, its largest number.
struct ShortFormat {
  int mantissa_bits, exponent_min;
  double largest;
  uint32_t infinity;  // its bits; of a format without, those of NaN
  uint32_t nan;
};

ShortFormat FormatOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return {10, -14, 65504, 0x7C00, 0x7E00};
    case DType::kFloat8E4M3:
      return {3, -6, 448, 0x7F, 0x7F};
    case DType::kFloat8E5M2:
      return {2, -14, 57344, 0x7C, 0x7E};
    default:
      return {7, -126, 3.3895313892515355e38, 0x7F80, 0x7FC0};  // bfloat16
  }
}

// Rounds to nearest even.
uint32_t Shorten(double value, const ShortFormat& format, int bits) {
  const uint32_t sign = std::signbit(value) ? uint32_t{1} << (bits - 1) : 0;
  const double size = std::fabs(value);
  if (std::isnan(value)) return sign | format.nan;
  if (std::isinf(size)) return sign | format.infinity;
  if (size == 0) return sign;
  const int exponent = std::max(std::ilogb(size), format.exponent_min);
  const double steps = std::nearbyint(std::ldexp(size, format.mantissa_bits - exponent));
  if (std::ldexp(steps, exponent - format.mantissa_bits) > format.largest)
    return sign | format.infinity;
  // A mantissa that carries its leading one raises the exponent by itself.
  const int biased = exponent - format.exponent_min;
  return sign |
         ((static_cast<uint32_t>(biased) << format.mantissa_bits) + static_cast<uint32_t>(steps));
}

void Store(DType dtype, double value, int64_t index, std::byte* out) {
  const auto put = [&](auto number) {
    std::memcpy(out + index * int64_t{sizeof(number)}, &number, sizeof(number));
  };
  if (dtype == DType::kFloat64) return put(value);
  if (dtype == DType::kFloat32) return put(static_cast<float>(value));
  const int bits = 8 * static_cast<int>(wire::ElementBytes(dtype));
  const uint32_t number = Shorten(value, FormatOf(dtype), bits);
  if (bits == 16) return put(static_cast<uint16_t>(number));
  put(static_cast<uint8_t>(number));
}

}  // namespace

std::optional<double> NearestFactor(const CopyView& view) {
  double xx = 0, xy = 0, yy = 0;
  ForEachPair(view, [&](double y, double x) {
    if (std::isfinite(x) && std::isfinite(y)) xx += x * x, xy += x * y, yy += y * y;
    return true;
  });
  if (!(xx > 0) || !(yy > 0)) return std::nullopt;
  const double factor = xy / xx;
  const double left = (yy - factor * xy) / yy;
  if (!std::isfinite(factor) || factor == 0 || !(left <= kFarOff * kFarOff)) return std::nullopt;
  return factor;
}

std::vector<std::byte> ScaledCopy(const CopyView& view, double factor) {
  std::vector<std::byte> bytes(static_cast<size_t>(view.count) *
                               wire::ElementBytes(view.output_dtype));
  Chunk input;
  for (int64_t begin = 0; begin < view.count; begin += kChunkElements) {
    const int64_t count = std::min(kChunkElements, view.count - begin);
    LoadAsDouble(view.input_dtype, view.input, begin, count, input.data());
    for (int64_t i = 0; i < count; ++i)
      Store(view.output_dtype, factor * input[static_cast<size_t>(i)], begin + i, bytes.data());
  }
  return bytes;
}

bool IsScaledCopy(const CopyView& view, double factor) {
  const double rounding =
      view.truth != nullptr ? kRounding64 : 4 * UnitRoundoff(NativeClass(view.output_dtype));
  const double denormal = view.truth != nullptr ? 0 : DenormalSpacing(view.output_dtype);
  return ForEachPair(view, [&](double y, double x) {
    const double expected = factor * x;
    if (std::isnan(expected)) return std::isnan(y);
    if (std::isinf(expected)) return y == expected;
    return std::fabs(y - expected) <= rounding * std::fabs(expected) + denormal;
  });
}

}  // namespace assay
