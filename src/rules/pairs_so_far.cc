#include "rules/pairs_so_far.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay {

PairsSoFar SumUp(std::span<const double> pair_log_ratios, const SpeedRule& rule, double spent_s,
                 double left_s) {
  PairsSoFar sum;
  sum.pairs = static_cast<int>(pair_log_ratios.size());
  sum.faster = Estimate(pair_log_ratios, rule).speedup >= rule.threshold;
  const double edge = std::log(rule.threshold) + (sum.faster ? rule.delta : -rule.delta);
  sum.factor = std::exp(edge);
  sum.beyond = static_cast<int>(std::ranges::count_if(
      pair_log_ratios, [&](double ratio) { return sum.faster ? ratio > edge : ratio < edge; }));
  sum.coming = std::max(0, rule.pairs_max - sum.pairs);
  sum.seconds_left = std::min(std::max(0.0, left_s), sum.coming * spent_s / std::max(1, sum.pairs));
  return sum;
}

std::string PairsText(const PairsSoFar& sum) {
  std::string text = fmt::format("{} of {} pairs {} {:.3g}x", sum.beyond, sum.pairs,
                                 sum.faster ? "over" : "below", sum.factor);
  if (sum.coming > 0) text += fmt::format(", up to {:.0f} s more", std::ceil(sum.seconds_left));
  return text;
}

}  // namespace assay
