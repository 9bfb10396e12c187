#include "search/step.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace assay {
namespace {

constexpr std::array<std::pair<StepKind, std::string_view>, 3> kNames = {{
    {StepKind::kPropose, "propose"},
    {StepKind::kJudge, "judge"},
    {StepKind::kConfirm, "confirm"},
}};

}  // namespace

std::string_view StepKindName(StepKind kind) {
  for (const auto& [each, name] : kNames)
    if (each == kind) return name;
  return "judge";
}

Step ConfirmationOf(const Step& step) {
  Step confirmation = step;
  confirmation.kind = StepKind::kConfirm;
  confirmation.key = fmt::format("{}{}", kConfirmPrefix, step.key);
  confirmation.lineage = {{step.key}, "confirm", step.lineage.note};
  return confirmation;
}

Ratio RatioOf(const Verdict& verdict) {
  if (!IsCorrect(verdict.outcome) || !verdict.speed) return {};
  const auto found = verdict.speed->baselines.find(verdict.speed->headline);
  if (found == verdict.speed->baselines.end()) return {};
  return {found->second.speedup, found->second.ci_low, found->second.ci_high};
}

}  // namespace assay
