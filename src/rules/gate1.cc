#include "rules/gate1.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "rules/elements.h"
#include "rules/error_bounds.h"
#include "rules/error_scan.h"

namespace assay {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Collects the first wrong element and how many there are.
class MismatchCollector {
 public:
  explicit MismatchCollector(const OutputView& output) : output_(output) {}

  bool Add(int64_t index, double got, double expected) {
    if (++wrong_ == 1) {
      mismatch_.index = Position(output_.shape, index);
      mismatch_.got = got;
      mismatch_.expected = expected;
      if (!IsFloatingPoint(output_.dtype))
        mismatch_.whole = WholeValues{LoadWhole(output_.dtype, output_.reference, index),
                                      LoadWhole(output_.dtype, output_.candidate, index)};
    }
    return true;
  }
  int64_t wrong() const { return wrong_; }

  Mismatch Finish() {
    mismatch_.output = output_.name;
    mismatch_.share_wrong =
        output_.count > 0 ? static_cast<double>(wrong_) / static_cast<double>(output_.count) : 0;
    return mismatch_;
  }

 private:
  const OutputView& output_;
  Mismatch mismatch_;
  int64_t wrong_ = 0;
};

Mismatch FindMismatch(const OutputView& output, double element_limit, int64_t worst_index) {
  MismatchCollector collector(output);
  VisitWrong(output, element_limit, [&](int64_t index, double got, double expected) {
    return collector.Add(index, got, expected);
  });
  if (collector.wrong() == 0 && worst_index >= 0) {
    // Small errors everywhere that only together go beyond the norm's bound: show the largest.
    collector.Add(worst_index, LoadOne(output.dtype, output.candidate, worst_index),
                  output.oracle != nullptr ? output.oracle[worst_index]
                                           : LoadOne(output.dtype, output.reference, worst_index));
    Mismatch mismatch = collector.Finish();
    mismatch.share_wrong = 0;
    return mismatch;
  }
  return collector.Finish();
}

OutputComparison CompareExactly(const OutputView& output) {
  OutputComparison result;
  result.shown = PrecisionClass::kExact;
  MismatchCollector collector(output);
  VisitInexact(output, [&](int64_t index, double got, double expected) {
    // Different integers may be equal as doubles.
    result.max_abs_error = std::max({result.max_abs_error, std::fabs(got - expected), 1.0});
    return collector.Add(index, got, expected);
  });
  result.passed = collector.wrong() == 0;
  result.meets_a_class = result.passed;
  result.error_ratio = result.passed ? 0 : kInfinity;
  if (!result.passed) result.mismatch = collector.Finish();
  return result;
}

// A floating-point output that must be exact: the reference's own values, NaN where it has NaN.
OutputComparison CompareFloatsExactly(OutputView output) {
  output.oracle = nullptr;
  const MeasuredErrors errors = ScanErrors(output);
  OutputComparison result;
  result.shown = PrecisionClass::kExact;
  result.passed = errors.kinds_agree && errors.max_abs == 0;
  result.meets_a_class = result.passed;
  result.error_ratio = result.passed ? 0 : kInfinity;
  result.max_abs_error = errors.max_abs;
  if (!result.passed) result.mismatch = FindMismatch(output, 0, errors.worst_index);
  return result;
}

double RatioTo(const MeasuredErrors& errors, const ErrorBounds& bounds) {
  if (!errors.kinds_agree) return kInfinity;
  const double norm = errors.norm == 0 ? 0 : errors.norm / bounds.norm;
  const double element = errors.element == 0 ? 0 : errors.element / bounds.element;
  return std::isnan(norm + element) ? kInfinity : std::max(norm, element);
}

// The bounds of a class for one kind of comparison.
class Bounds {
 public:
  Bounds(const OutputView& output, const ReferenceError& error, bool against_reference)
      : native_(NativeClass(output.dtype)),
        error_(error),
        count_(output.count),
        against_reference_(against_reference) {}

  // Against the reference, an honest candidate may be off by its own error plus the reference's.
  ErrorBounds For(PrecisionClass precision) const {
    ErrorBounds bounds = BoundsFor(precision, native_, error_, count_);
    if (against_reference_) {
      bounds.norm += error_.norm_relative;
      bounds.element += error_.element_relative;
    }
    return bounds;
  }
  PrecisionClass Required(PrecisionClass asked) const { return std::max(asked, native_); }
  PrecisionClass native() const { return native_; }

 private:
  PrecisionClass native_;
  ReferenceError error_;
  int64_t count_;
  bool against_reference_;
};

void FindClass(const MeasuredErrors& errors, const Bounds& bounds, OutputComparison* result) {
  for (PrecisionClass level = bounds.native(); level != PrecisionClass::kExact;
       level = NextCoarser(level)) {
    if (!(RatioTo(errors, bounds.For(level)) <= 1)) continue;
    result->shown = level;
    result->meets_a_class = true;
    return;
  }
}

OutputComparison Conclude(const OutputView& output, const CompareRule& rule,
                          const MeasuredErrors& errors, const Bounds& bounds) {
  OutputComparison result;
  result.max_abs_error = errors.max_abs;
  FindClass(errors, bounds, &result);
  if (rule.allclose) {
    const MeasuredErrors close = ScanAllClose(output, *rule.allclose);
    result.error_ratio = close.element;
    result.passed = close.kinds_agree && close.element <= 1;
    if (!result.passed) {
      MismatchCollector collector(output);
      VisitNotClose(output, *rule.allclose, [&](int64_t index, double got, double expected) {
        return collector.Add(index, got, expected);
      });
      result.mismatch = collector.Finish();
    }
    return result;
  }
  const ErrorBounds required = bounds.For(bounds.Required(rule.required));
  result.error_ratio = RatioTo(errors, required);
  result.passed = result.error_ratio <= 1;
  if (!result.passed) result.mismatch = FindMismatch(output, required.element, errors.worst_index);
  return result;
}

// Without naming an element in a failure. nullopt: the rule needs a look at every element.
std::optional<OutputComparison> Rate(const CompareRule& rule, const MeasuredErrors& measured,
                                     const Bounds& bounds) {
  if (rule.allclose || rule.required == PrecisionClass::kExact) return std::nullopt;
  OutputComparison result;
  result.max_abs_error = measured.max_abs;
  FindClass(measured, bounds, &result);
  result.error_ratio = RatioTo(measured, bounds.For(bounds.Required(rule.required)));
  result.passed = result.error_ratio <= 1;
  return result;
}

void RaiseTo(double value, double* learned) {
  if (std::isfinite(value) && value > *learned) *learned = value;
}

OutputComparison CompareAllCloseCheaply(const OutputView& output, const AllClose& tolerance) {
  const MeasuredErrors close = ScanAllClose(output, tolerance);
  OutputComparison result;
  result.error_ratio = close.element;
  result.max_abs_error = close.max_abs;
  result.passed = close.kinds_agree && close.element <= 1;
  return result;
}

// Why a NaN or an infinity at this element makes a draw meaningless; empty when it does not.
std::string SpecialValueTrouble(const OutputView& output, int64_t index, double given, double truth,
                                bool special_values) {
  std::string place = output.name;
  for (int64_t part : Position(output.shape, index)) place += fmt::format("[{}]", part);
  if (!std::isfinite(truth) && !special_values)
    return fmt::format("the reference gives {} at {}{}", truth, place,
                       output.oracle != nullptr ? " even in float64" : "");
  const bool agrees = std::isnan(truth) ? std::isnan(given) : given == truth;
  if (agrees) return {};
  return fmt::format("the reference gives {} at {} where float64 gives {}", given, place, truth);
}

}  // namespace

Result<std::optional<AllClose>> ParseTolerance(std::string_view text) {
  constexpr std::string_view kPrefix = "allclose:";
  if (text.empty() || text == "error-ratio") return std::optional<AllClose>();
  if (text.starts_with(kPrefix)) {
    const std::string_view number = text.substr(kPrefix.size());
    double value = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error == std::errc() && end == number.data() + number.size() && value > 0 && value < 1)
      return std::optional(AllClose{value, value});
  }
  return UsageError(fmt::format(
      "tolerance '{}' is not known: use error-ratio, or allclose:T with T between 0 and 1, such as "
      "allclose:1e-4",
      text));
}

void RaiseTo(const ReferenceError& seen, ReferenceError* learned) {
  RaiseTo(seen.norm_relative, &learned->norm_relative);
  RaiseTo(seen.element_relative, &learned->element_relative);
  RaiseTo(seen.root_mean_square, &learned->root_mean_square);
}

// What other draws of the same kind showed counts too: on one draw alone the reference may be
// luckily exact.
Bounds BoundsWithOracle(const OutputView& output, const MeasuredErrors& errors,
                        ReferenceError* learned) {
  if (learned == nullptr) return Bounds(output, errors.reference, false);
  RaiseTo(errors.reference, learned);
  return Bounds(output, *learned, false);
}

OutputComparison CompareWithOracle(const OutputView& output, const CompareRule& rule,
                                   ReferenceError* learned) {
  if (!IsFloatingPoint(output.dtype)) return CompareExactly(output);
  if (output.oracle == nullptr)
    return CompareWithReference(output, rule, learned != nullptr ? *learned : ReferenceError{});
  const MeasuredErrors errors = ScanErrors(output);
  const Bounds bounds = BoundsWithOracle(output, errors, learned);
  if (rule.required == PrecisionClass::kExact && !rule.allclose)
    return CompareFloatsExactly(output);
  return Conclude(output, rule, errors, bounds);
}

double ElementLimitWithOracle(const OutputView& output, const CompareRule& rule) {
  const Bounds bounds(output, ScanErrors(output).reference, false);
  return bounds.For(bounds.Required(rule.required)).element;
}

std::optional<OutputComparison> RateWithOracle(const OutputView& output, const CompareRule& rule,
                                               ReferenceError* learned,
                                               const MeasuredErrors& measured) {
  return Rate(rule, measured, BoundsWithOracle(output, measured, learned));
}

std::optional<OutputComparison> ConcludeWithOracle(const OutputView& output,
                                                   const CompareRule& rule, ReferenceError* learned,
                                                   const MeasuredErrors& measured) {
  const auto result = RateWithOracle(output, rule, learned, measured);
  return result && result->passed ? result : std::nullopt;
}

bool IsUsable(const ReferenceError& error) {
  return error.norm_relative <= kReferenceErrorMax && error.element_relative <= kReferenceErrorMax;
}

std::optional<double> CheapScanLimit(const OutputView& output, const CompareRule& rule,
                                     const ReferenceError& error) {
  if (!IsFloatingPoint(output.dtype)) return 0.0;
  if (rule.allclose || rule.required == PrecisionClass::kExact) return std::nullopt;
  const Bounds bounds(output, error, true);
  return bounds.For(bounds.native()).element;
}

std::optional<OutputComparison> ConcludeCheaply(const OutputView& output, const CompareRule& rule,
                                                const ReferenceError& error,
                                                const MeasuredErrors& cheap) {
  OutputComparison result;
  result.passed = true;
  if (!IsFloatingPoint(output.dtype)) return result;
  const Bounds bounds(output, error, true);
  if (!(cheap.norm <= bounds.For(bounds.native()).norm)) return std::nullopt;
  result.meets_a_class = true;
  result.shown = bounds.native();
  result.max_abs_error = cheap.max_abs;
  result.error_ratio = RatioTo(cheap, bounds.For(bounds.Required(rule.required)));
  return result;
}

std::optional<OutputComparison> ConcludeWithReference(const OutputView& output,
                                                      const CompareRule& rule,
                                                      const ReferenceError& error,
                                                      const MeasuredErrors& measured) {
  auto result = Rate(rule, measured, Bounds(output, error, true));
  return result && result->passed ? result : std::nullopt;
}

OutputComparison CompareWithReference(const OutputView& output, const CompareRule& rule,
                                      const ReferenceError& error) {
  if (!IsFloatingPoint(output.dtype)) return CompareExactly(output);
  OutputView native = output;
  native.oracle = nullptr;
  if (rule.allclose) {
    OutputComparison result = CompareAllCloseCheaply(native, *rule.allclose);
    if (result.passed) return result;
    return Conclude(native, rule, ScanErrors(native), Bounds(native, error, true));
  }
  if (rule.required == PrecisionClass::kExact) return CompareFloatsExactly(native);
  const auto limit = CheapScanLimit(native, rule, error);
  if (const auto cheap = ScanErrorsCheaply(native, *limit))
    if (auto settled = ConcludeCheaply(native, rule, error, *cheap)) return *settled;
  return Conclude(native, rule, ScanErrors(native), Bounds(native, error, true));
}

std::string OffFromFloat64(const ReferenceError& error, const std::string& output) {
  if (!(error.norm_relative <= kReferenceErrorMax))
    return fmt::format("the reference itself is off by {:.2g} of {}'s norm from float64",
                       error.norm_relative, output);
  if (!(error.element_relative <= kReferenceErrorMax))
    return fmt::format("the reference itself is off by {:.2g} of its scale at an element of {}",
                       error.element_relative, output);
  return {};
}

Scatter ScatterOf(std::span<const ReferenceError> errors, PrecisionClass native) {
  Scatter scatter;
  if (native == PrecisionClass::kExact) return scatter;
  const double least = kScatteredFromRoundoffs * UnitRoundoff(native);
  for (const ReferenceError& error : errors) {
    if (!IsScattered(error.norm_relative, native)) continue;
    scatter.words = fmt::format(
        "on ordinary values the reference's own outputs are off by {:.2g} of their norm from "
        "float64",
        error.norm_relative);
    scatter.meaningless = error.norm_relative > std::max(kScatteredMax, least);
    if (scatter.meaningless) break;
  }
  return scatter;
}

int64_t CountNumbers(const OutputView& output) {
  if (!IsFloatingPoint(output.dtype)) return output.count;
  std::array<double, kChunkElements> native;
  int64_t numbers = 0;
  for (int64_t begin = 0; begin < output.count; begin += kChunkElements) {
    const int64_t count = std::min(kChunkElements, output.count - begin);
    LoadAsDouble(output.dtype, output.reference, begin, count, native.data());
    numbers += std::count_if(native.begin(), native.begin() + count,
                             [](double value) { return std::isfinite(value); });
  }
  return numbers;
}

bool DrawIsMeaningful(const OutputView& output, bool special_values, std::string* reason) {
  if (!IsFloatingPoint(output.dtype)) return true;
  std::array<double, kChunkElements> native;
  for (int64_t begin = 0; begin < output.count; begin += kChunkElements) {
    const int64_t count = std::min(kChunkElements, output.count - begin);
    LoadAsDouble(output.dtype, output.reference, begin, count, native.data());
    for (int64_t i = 0; i < count; ++i) {
      const double given = native[static_cast<size_t>(i)];
      const double truth = output.oracle != nullptr ? output.oracle[begin + i] : given;
      if (std::isfinite(given) && std::isfinite(truth)) continue;
      *reason = SpecialValueTrouble(output, begin + i, given, truth, special_values);
      if (!reason->empty()) return false;
    }
  }
  if (output.oracle == nullptr) return true;
  OutputView reference = output;
  reference.candidate = output.reference;
  const MeasuredErrors errors = ScanErrors(reference);
  *reason = OffFromFloat64({errors.norm, errors.element, 0}, output.name);
  return reason->empty();
}

}  // namespace assay
