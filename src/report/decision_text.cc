#include "report/decision_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "report/text.h"
#include "rules/gate2.h"

namespace assay {
namespace {

// A clear case needs every pair beyond the clear margin. On CPUs fewer than one pair in 1,000 of
// identical programs lies there, and the first pair has to. On GPUs fewer pairs were measured, none
// of them beyond it: even if one in ten were, three independent pairs would be one in 1,000.
constexpr double kClearCaseBound = 1e-3;

// The step of the last digit that FormatRatio shows.
double StepOf(double ratio) {
  if (ratio >= 99.95) return 1;
  if (ratio >= 9.995) return 0.1;
  if (ratio >= 1.0995) return 0.01;
  if (ratio >= 0.0995) return 0.001;
  return std::pow(10, std::floor(std::log10(ratio)) - 1);
}

// Keeps 2.43, which doubles hold as a little more or less, from becoming 2.42 or 2.44.
constexpr double kSlack = 1e-6;

std::string AtLeast(double ratio) {
  if (!std::isfinite(ratio) || ratio <= 0) return FormatRatio(ratio);
  const double step = StepOf(ratio);
  return FormatRatio(std::floor(ratio / step + kSlack) * step);
}

std::string AtMost(double ratio) {
  if (!std::isfinite(ratio) || ratio <= 0) return FormatRatio(ratio);
  const double step = StepOf(ratio);
  return FormatRatio(std::ceil(ratio / step - kSlack) * step);
}

// "1 in 270" for 0.0037: two digits, rounded towards the larger chance.
std::string Odds(double chance) {
  if (!(chance > 0 && chance < 1)) return "?";
  const double one_in = 1 / chance;
  const double step = std::pow(10, std::max(0.0, std::floor(std::log10(one_in) + kSlack) - 1));
  const auto rounded = static_cast<long long>(std::floor(one_in / step + kSlack) * step);
  return rounded < 1000 ? fmt::format("1 in {}", rounded)
                        : fmt::format("1 in {},{:03}", rounded / 1000, rounded % 1000);
}

double MissOf(int pairs) {
  return 1 - Estimate(std::vector<double>(static_cast<size_t>(pairs)), SpeedRule()).confidence;
}

// The chance that at some look up to this one the interval missed the true speed.
double FalseTieBound(int pairs) {
  double bound = 0;
  int last = 0;
  for (const Look& look : Looks()) {
    if (look.pairs > pairs) break;
    bound += MissOf(look.pairs);
    last = look.pairs;
  }
  return last == pairs ? bound : bound + MissOf(pairs);
}

// A win or a loss.
std::string Won(const BaselineResult& result, double threshold, bool faster) {
  const int pairs = result.pairs;
  const Look* at = nullptr;
  for (const Look& look : Looks())
    if (look.pairs <= pairs) at = &look;
  const double bound = at == nullptr ? kClearCaseBound : FalseWinBound();
  const std::string error =
      fmt::format("; a false {} is rarer than {}", faster ? "win" : "loss", Odds(bound));
  // With so few pairs the interval spans all of them.
  if (at == nullptr || at->needed == pairs)
    return fmt::format(
        "{0} of {1}, each at {2} as fast{3}", pairs, Counted(pairs, "pair"),
        faster ? "least " + AtLeast(result.ci_low) : "most " + AtMost(result.ci_high), error);
  const std::string side =
      threshold == 1 ? std::string(faster ? "faster" : "slower")
                     : fmt::format("{} than {:g}x as fast", faster ? "more" : "less", threshold);
  return fmt::format("at least {} of {} are {}{}", at->needed, Counted(pairs, "pair"), side, error);
}

std::string Unseen(const BaselineResult& result) {
  if (!(result.smallest_visible > 1)) return {};
  return fmt::format("; a gain under {} could not have been seen",
                     FormatGain(result.smallest_visible));
}

std::string Tied(const BaselineResult& result, double threshold) {
  const double apart =
      std::max(std::abs(result.ci_low / threshold - 1), std::abs(result.ci_high / threshold - 1));
  const std::string where =
      threshold == 1 ? std::string("equal speed") : fmt::format("{:g}x the speed", threshold);
  return fmt::format("{}, within {} of {}; a false tie is rarer than {}{}",
                     Counted(result.pairs, "pair"),
                     FormatGain(1 + std::ceil(1000 * apart - kSlack) / 1000), where,
                     Odds(FalseTieBound(result.pairs)), Unseen(result));
}

// Why pairs that all point one way decide nothing.
std::string_view WhyNoDecision(const BaselineResult& result) {
  if (!result.why_unsettled) return "too few or too disturbed for a decision";
  switch (result.why_unsettled->cause) {
    case UnsettledCause::kNoise:
      return "too few of them by more than the noise for a decision";
    case UnsettledCause::kDisturbed:
      return "too disturbed by other processes for a decision";
    case UnsettledCause::kBudget:
      return "too few for a decision when the budget ended";
    case UnsettledCause::kUnseen:
      return "and operators that the values do not show take as much time";
    default:
      return "which the note does not let count";
  }
}

}  // namespace

std::string IntervalText(const BaselineResult& result) {
  if (result.confidence == 0 && std::isnan(result.ci_low))
    return fmt::format(
        "and {} too few for an interval",
        result.pairs == 1 ? std::string("1 pair is") : fmt::format("{} pairs are", result.pairs));
  return fmt::format("between {} and {}", AtLeast(result.ci_low), AtMost(result.ci_high));
}

std::string DecisionText(const BaselineResult& result, double threshold) {
  if (result.decision == "faster") return Won(result, threshold, true);
  if (result.decision == "slower") return Won(result, threshold, false);
  if (result.decision == "tie") return Tied(result, threshold);
  const std::string open = threshold == 1
                               ? std::string("which is faster")
                               : fmt::format("whether it is more than {:g}x as fast", threshold);
  if (result.decision == "not_faster")
    return fmt::format(
        "a win was out of reach after {}; a slower candidate or a tie is not pursued",
        Counted(result.pairs, "pair"));
  if (result.ci_low > threshold || result.ci_high < threshold)
    return fmt::format("{} point one way, {}", Counted(result.pairs, "pair"),
                       WhyNoDecision(result));
  return fmt::format("after {} it is open {}{}", Counted(result.pairs, "pair"), open,
                     Unseen(result));
}

}  // namespace assay
