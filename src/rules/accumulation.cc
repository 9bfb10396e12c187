#include "rules/accumulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "rules/elements.h"

namespace assay {
namespace {

// Shares of a result, for each of K products of one sign; and for sqrt(K) of both signs.
constexpr double kLossOfOne = 1.5e-5, kErrorOfRoot = 2e-5;
// How far the measured figure may be from them, as a factor: data differ.
constexpr double kLossLow = 0.22, kLossHigh = 1.7, kErrorLow = 0.6, kErrorHigh = 1.6;
constexpr double kNearlyAll = 0.95, kBothWays = 0.25;  // shares; of one half
// Shorter sums lose no more than promoted ones do at their first level.
constexpr int64_t kLengthMin = 1024;
constexpr int64_t kElementsMin = 64;

struct Errors {
  int64_t count = 0, smaller = 0, short_values = 0;  // elements; those nearer to zero; of bfloat16
  double loss = 0, size = 0;                         // sums of |truth| - |value|, of |truth|
  double error2 = 0, size2 = 0;                      // sums of squares
  bool all_finite = true;

  void Add(double value, double truth) {
    if (!std::isfinite(value) || !std::isfinite(truth)) {
      all_finite = false;
      return;
    }
    const double lost = std::copysign(1.0, truth) * (truth - value);
    ++count;
    smaller += lost > 0 ? 1 : 0;
    short_values += (std::bit_cast<uint32_t>(static_cast<float>(value)) & 0xFFFF) == 0 ? 1 : 0;
    loss += lost;
    size += std::fabs(truth);
    error2 += lost * lost;
    size2 += truth * truth;
  }
};

Errors Measure(const OutputView& output) {
  Errors errors;
  std::array<double, kChunkElements> values, truths;
  for (int64_t begin = 0; begin < output.count && errors.all_finite; begin += kChunkElements) {
    const int64_t part = std::min(kChunkElements, output.count - begin);
    LoadAsDouble(output.dtype, output.candidate, begin, part, values.data());
    if (output.oracle != nullptr)
      std::copy_n(output.oracle + begin, part, truths.data());
    else
      LoadAsDouble(output.dtype, output.reference, begin, part, truths.data());
    for (size_t i = 0; i < static_cast<size_t>(part); ++i) errors.Add(values[i], truths[i]);
  }
  return errors;
}

bool LosesAsOneSign(const Errors& errors, int64_t length) {
  const double ratio = errors.loss / errors.size / (kLossOfOne * static_cast<double>(length));
  return static_cast<double>(errors.smaller) >= kNearlyAll * static_cast<double>(errors.count) &&
         ratio >= kLossLow && ratio <= kLossHigh;
}

// Errors go both ways. Results that were rounded to bfloat16 on the way have errors of that size,
// too.
bool ErrsAsBothSigns(const Errors& errors, int64_t length) {
  const double ratio = std::sqrt(errors.error2 / errors.size2) /
                       (kErrorOfRoot * std::sqrt(static_cast<double>(length)));
  const double smaller = static_cast<double>(errors.smaller) / static_cast<double>(errors.count);
  return std::fabs(smaller - 0.5) <= kBothWays && 2 * errors.short_values < errors.count &&
         ratio >= kErrorLow && ratio <= kErrorHigh;
}

}  // namespace

std::string DescribeAccumulation(const OutputView& output, const HintContext& context) {
  std::array<int64_t, 2> longest{};  // the last dimensions of float8 inputs
  for (const InputView& input : context.inputs)
    if (NativeClass(input.dtype) == PrecisionClass::kFloat8 && input.inner != longest[0])
      longest = {std::max(longest[0], input.inner), std::min(longest[0], input.inner)};
  if (longest[0] < kLengthMin || NativeClass(output.dtype) >= PrecisionClass::kFloat8) return {};
  const Errors errors = Measure(output);
  if (!errors.all_finite || errors.count < kElementsMin || !(errors.size2 > 0)) return {};
  for (const int64_t length : longest) {
    if (length < kLengthMin) continue;
    const bool one_sign = LosesAsOneSign(errors, length);
    if (!one_sign && !ErrsAsBothSigns(errors, length)) continue;
    return fmt::format(
        "{}, as sums of {} float8 products are that a matrix unit keeps in its 14 bits or so "
        "(one-level accumulation): add the unit's sums to float totals every 128 products",
        one_sign ? fmt::format("results are too small by {:.2g}%", 100 * errors.loss / errors.size)
                 : fmt::format("errors are {:.2g} of the results",
                               std::sqrt(errors.error2 / errors.size2)),
        length);
  }
  return {};
}

}  // namespace assay
