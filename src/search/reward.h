// The reward of a verdict, for training (docs/env.md). Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/verdict.h"

namespace assay {

enum class RewardFormula {
  kFast,   // 1 if gate 2 certifies more than p times the speed, else 0
  kKevin,  // 0.3 + t_reference / t_candidate if it is correct, else 0
};
// "fast", "kevin". Errors: kUsage.
Result<RewardFormula> RewardFormulaFromName(std::string_view name);
std::string_view RewardFormulaName(RewardFormula formula);

struct RewardRules {
  RewardFormula formula = RewardFormula::kFast;
  double p = 1;      // of kFast
  double tie = 0;    // of kFast: as fast as the baseline, within what can be seen
  double foul = -1;  // of both: it broke a rule
  double gamma = 0.4;
};

// nullopt: the verdict says nothing of the candidate, as it stayed open ("unsettled"). Kevin's
// formula: Baronio et al., "Kevin: Multi-Turn RL for Generating CUDA Kernels", arXiv 2507.11948.
std::optional<double> RewardOf(const Verdict& verdict, const RewardRules& rules);

// Returns, for each turn t, the sum over later turns i >= t of gamma^(i - t) S_i. A turn without a
// reward has no return, and adds nothing to those before it.
std::vector<std::optional<double>> ReturnsOf(const std::vector<std::optional<double>>& rewards,
                                             double gamma);

}  // namespace assay
