#include "base/defences.h"

namespace assay {

const std::vector<std::pair<Defence, std::string_view>>& DefenceNames() {
  static const std::vector<std::pair<Defence, std::string_view>> names = {
      {Defence::kPoison, "poison"},
      {Defence::kGuards, "guards"},
      {Defence::kTimedChecks, "timed-checks"},
      {Defence::kFreshValues, "fresh-values"},
      {Defence::kVariedDraws, "varied-draws"},
      {Defence::kErrorBounds, "error-bounds"},
      {Defence::kRaggedSizes, "ragged-sizes"},
      {Defence::kRandomWeights, "random-weights"},
      {Defence::kVaryingWeights, "varying-weights"},
      {Defence::kFreeze, "freeze"},
      {Defence::kWaitingHosts, "waiting-hosts"},
      {Defence::kSleepProof, "sleep-proof"},
      {Defence::kHeadStart, "head-start"},
      {Defence::kLongBlocks, "long-blocks"},
      {Defence::kTimedDraws, "timed-draws"},
      {Defence::kLateWrites, "late-writes"},
      {Defence::kReadOnlyInputs, "read-only-inputs"},
      {Defence::kSteps, "steps"},
      {Defence::kLockdown, "lockdown"},
      {Defence::kDegenerate, "degenerate"},
      {Defence::kLeftResults, "left-results"},
      {Defence::kLibraries, "libraries"},
  };
  return names;
}

}  // namespace assay
