// FailureHint: makes one sentence of wrong_pattern.h's facts, the most telling fact first.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "rules/accumulation.h"
#include "rules/elements.h"
#include "rules/error_scan.h"
#include "rules/gate1.h"
#include "rules/wrong_pattern.h"

namespace assay {
namespace {

constexpr double kNearlyAll = 0.98;
constexpr double kScattered = 0.05;

struct DrawSentence {
  std::string_view kind;
  Mistake mistake;
  std::string_view sentence;
  bool before_precision;  // more telling than the class that the errors happen to fit
};
constexpr std::array<DrawSentence, 12> kDrawSentences{{
    {"large-offset", Mistake::kLargeOffsets,
     "wrong on large offsets (mean 1000, deviation 0.1): likely cancellation; E[x^2] - mean^2, or "
     "a sum without "
     "compensation, loses the small differences",
     true},
    {"wide-range", Mistake::kWideRange,
     "wrong where magnitudes span many decades: small terms are lost beside large ones, or a range "
     "is assumed",
     false},
    {"tiny-scale", Mistake::kTinyValues,
     "wrong on tiny values: underflow, a fixed epsilon, an absolute threshold, or values that are "
     "no "
     "input, such as padding",
     false},
    {"huge-scale", Mistake::kHugeValues,
     "wrong on huge values: likely overflow; subtract the maximum before exp, scale before "
     "squaring",
     true},
    {"signed-zeros", Mistake::kSignedZeros,
     "wrong on zeros of both signs: a zero is taken for 'nothing there', divided by, or on the "
     "wrong side of a comparison",
     false},
    {"ties", Mistake::kTies,
     "wrong where values are equal: ties are broken in another order, or counted twice", false},
    {"small-integers", Mistake::kSmallIntegers,
     "wrong on small integers, where linear steps are exact: a wrong term or index", false},
    {"zero-one", Mistake::kZerosAndOnes,
     "wrong on inputs of 0 and 1, where linear steps are exact: a wrong term or index", false},
    {"outlier", Mistake::kOutliers,
     "wrong where each row has one large value: a running maximum or a scale that is not updated",
     false},
    {"patch", Mistake::kUnusualValues,
     "wrong where a run of rows is unlike all others: it looks at a part of the values, or leaves "
     "out what the others do not need",
     false},
    {"special-values", Mistake::kSpecialValues,
     "wrong on NaN or infinity: a comparison that NaN passes, fast-math, or a difference of "
     "infinities",
     true},
    {"signs", Mistake::kBothSigns,
     "wrong where values have both signs: get_inputs() gives one sign alone, and the candidate "
     "relies "
     "on it",
     false},
}};

const DrawSentence* FindDrawSentence(const HintContext& context) {
  if (!context.ordinary_passed) return nullptr;
  for (const DrawSentence& draw : kDrawSentences)
    if (draw.kind == context.draw_kind) return &draw;
  return nullptr;
}

constexpr std::string_view kOverflows =
    "NaN or infinite on large offsets (mean 1000, deviation 0.1): likely overflow, as of exp "
    "without "
    "the maximum subtracted first, or a division of 0 by 0";

std::string_view SentenceOf(const DrawSentence& draw, Mistake content) {
  const bool overflows =
      draw.mistake == Mistake::kLargeOffsets && content == Mistake::kNanOrInfinity;
  return overflows ? kOverflows : draw.sentence;
}

double Share(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

std::string Percent(double share) {
  return share >= 0.001 ? fmt::format("{:.1f}%", 100 * share) : fmt::format("{:.2g}%", 100 * share);
}

std::string Join(const std::string& first, const std::string& second) {
  if (first.empty()) return second;
  return second.empty() ? first : first + "; " + second;
}

std::string DescribeUnwritten(const WrongSet& wrong) {
  if (wrong.poisoned == 0 || Share(wrong.poisoned, wrong.count) < kNearlyAll) return {};
  if (wrong.poisoned == wrong.elements)
    return "never written: the output still holds what stood there before the call";
  return Join(fmt::format("at least {} of the output was never written",
                          Percent(Share(wrong.poisoned, wrong.elements))),
              DescribePlace(wrong));
}

std::string DescribeInput(const OutputView& output, const HintContext& context) {
  const size_t bytes = static_cast<size_t>(output.count) * wire::ElementBytes(output.dtype);
  for (const InputView& input : context.inputs) {
    if (input.data == nullptr || input.dtype != output.dtype || input.count != output.count)
      continue;
    if (bytes > 0 && std::memcmp(output.candidate, input.data, bytes) == 0)
      return fmt::format("equals its input {}: copied through", input.name);
  }
  return {};
}

// What the output holds as a whole: one value, NaN, infinities.
Hint DescribeContent(const OutputView& output, const WrongSet& wrong) {
  const size_t element = wire::ElementBytes(output.dtype);
  const size_t bytes = static_cast<size_t>(output.count) * element;
  const char* data = static_cast<const char*>(output.candidate);
  if (wrong.nan == wrong.elements) return {"all NaN", Mistake::kNanOrInfinity};
  if (output.count > 1 && std::memcmp(data, data + element, bytes - element) == 0) {
    const double value = LoadOne(output.dtype, data, 0);
    return {value == 0 ? "all zeros" : fmt::format("the same value everywhere: {:.6g}", value),
            Mistake::kOneValue};
  }
  if (wrong.nan > 0)
    return {fmt::format("{} of the elements are NaN where they should not be",
                        Percent(Share(wrong.nan, wrong.elements))),
            Mistake::kNanOrInfinity};
  if (wrong.infinite > 0)
    return {fmt::format("{} of the elements are infinite where they should not be",
                        Percent(Share(wrong.infinite, wrong.elements))),
            Mistake::kNanOrInfinity};
  if (wrong.finite > 0)
    return {fmt::format("{} of the elements are finite where NaN or an infinity belongs",
                        Percent(Share(wrong.finite, wrong.elements))),
            Mistake::kNanOrInfinity};
  if (wrong.zero > 0 && Share(wrong.zero, wrong.count) >= kNearlyAll)
    return {fmt::format("{} of the elements are zero where they should not be",
                        Percent(Share(wrong.zero, wrong.elements))),
            Mistake::kZeros};
  return {};
}

// Integers that differ by multiples of what an accumulator of 8, 16 or 32 bits counts to.
std::string DescribeWrapped(const OutputView& output, const WrongSet& wrong) {
  constexpr size_t kFew = 4;  // may be so by chance
  if (NativeClass(output.dtype) != PrecisionClass::kExact || wrong.samples.size() < kFew) return {};
  for (const int bits : {32, 16, 8}) {
    const double period = std::ldexp(1.0, bits);
    if (bits < 8 * static_cast<int>(wire::ElementBytes(output.dtype)) &&
        std::ranges::all_of(wrong.samples, [&](const WrongSample& sample) {
          return std::fmod(sample.got - sample.expected, period) == 0;
        }))
      return fmt::format("off by multiples of {:.0f}: sums overflow {} bits", period, bits);
  }
  return {};
}

Hint DescribePrecision(const OutputView& output, const OutputComparison& comparison) {
  const PrecisionClass native = NativeClass(output.dtype);
  if (!comparison.meets_a_class || native == PrecisionClass::kExact) return {};
  if (comparison.shown <= native)
    return {fmt::format("within {} accuracy of the true values, but outside the tolerance that was "
                        "asked for",
                        PrecisionClassName(native)),
            Mistake::kPrecision};
  const bool half = comparison.shown == PrecisionClass::kTf32;
  return {fmt::format("errors are as large as {} arithmetic or a missing small term makes them, "
                      "the problem asks for {}",
                      half ? "float16/tf32" : PrecisionClassName(comparison.shown),
                      PrecisionClassName(native)),
          Mistake::kPrecision, comparison.shown};
}

Hint DescribeRest(const OutputComparison& comparison, const WrongSet& wrong) {
  if (wrong.count == 0)
    return {
        "each element is close, but together the errors are larger than this precision explains",
        Mistake::kPrecision};
  if (wrong.elements == 1) return {fmt::format("off by {:.3g}", comparison.max_abs_error)};
  const double share = Share(wrong.count, wrong.elements);
  if (share <= kScattered)
    return {
        fmt::format("{} scattered elements ({}) are wrong: a race, uninitialised values, or a rare "
                    "branch",
                    wrong.count, Percent(share)),
        Mistake::kScattered};
  return {fmt::format("{} of the elements are wrong, by up to {:.3g}", Percent(share),
                      comparison.max_abs_error)};
}

}  // namespace

Hint FailureHint(const OutputView& output, const OutputComparison& comparison,
                 const HintContext& context) {
  const WrongSet wrong = CollectWrong(output, context.poison);
  if (const std::string text = DescribeUnwritten(wrong); !text.empty())
    return {text, Mistake::kNotWritten};
  if (const std::string text = DescribeInput(output, context); !text.empty())
    return {text, Mistake::kCopiedInput};
  if (const std::string text = DescribeAccumulation(output, context); !text.empty())
    return {text, Mistake::kPrecision};
  if (const std::string text = DescribeWrapped(output, wrong); !text.empty())
    return {text, Mistake::kPrecision};

  const DrawSentence* draw = FindDrawSentence(context);
  // Integers of huge values are off by their rounding, too.
  if (draw != nullptr && draw->mistake == Mistake::kHugeValues && !IsFloatingPoint(output.dtype))
    draw = nullptr;
  const Hint content = DescribeContent(output, wrong);
  const std::string place = DescribePlace(wrong);
  if (draw != nullptr && (draw->before_precision || !comparison.meets_a_class))
    return {
        Join(Join(fmt::format("right on ordinary values, {}", SentenceOf(*draw, content.mistake)),
                  content.text),
             place),
        draw->mistake};
  if (!content.text.empty()) return {Join(content.text, place), content.mistake};

  // A class explains errors that are everywhere; values that are off by a rule are told first.
  const Hint values = DescribeValues(output, wrong);
  const bool moved = !values.text.empty() && values.mistake == Mistake::kMisplaced;
  if (!place.empty() || !values.text.empty())
    return {Join(place, values.text), !place.empty() && !moved ? Mistake::kPart : values.mistake};
  if (Hint precision = DescribePrecision(output, comparison); !precision.text.empty())
    return precision;
  return DescribeRest(comparison, wrong);
}

}  // namespace assay
