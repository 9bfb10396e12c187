#include "search/reward.h"

#include <fmt/format.h>

#include <algorithm>

#include "score/attempt.h"

namespace assay {
namespace {

// Times by the median ratio, which pairs give; the times alone are of other moments.
double Kevin(const Attempt& attempt) {
  constexpr double kCorrect = 0.3;
  return attempt.correct() ? kCorrect + attempt.speedup : 0;
}

}  // namespace

Result<RewardFormula> RewardFormulaFromName(std::string_view name) {
  for (const RewardFormula formula : {RewardFormula::kFast, RewardFormula::kKevin})
    if (name == RewardFormulaName(formula)) return formula;
  return UsageError(fmt::format("reward formula {}: give fast or kevin", name));
}

std::string_view RewardFormulaName(RewardFormula formula) {
  return formula == RewardFormula::kFast ? "fast" : "kevin";
}

std::optional<double> RewardOf(const Verdict& verdict, const RewardRules& rules) {
  if (verdict.outcome == Outcome::kUnsettled) return std::nullopt;
  if (verdict.outcome == Outcome::kFoul) return rules.foul;
  const Attempt attempt = AttemptOf(verdict);
  if (rules.formula == RewardFormula::kKevin) return Kevin(attempt);
  if (Qualifies(attempt, rules.p, true)) return 1;
  return verdict.outcome == Outcome::kTie ? rules.tie : 0;
}

std::vector<std::optional<double>> ReturnsOf(const std::vector<std::optional<double>>& rewards,
                                             double gamma) {
  std::vector<std::optional<double>> returns(rewards.size());
  double later = 0;
  for (size_t i = rewards.size(); i > 0; --i) {
    later = rewards[i - 1].value_or(0) + gamma * later;
    if (rewards[i - 1]) returns[i - 1] = later;
  }
  return returns;
}

}  // namespace assay
