#include "judge/steps.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay {

bool WorksAhead(const StepTimes& pair, int threads) {
  const double slower_anyway = std::max(1.0, pair.reference_step_ns / pair.reference_row_ns);
  const double wake_ns = threads > 1 ? kStepWakeThreadsNs : kStepWakeNs;
  return pair.candidate_step_ns > kStepRatioMax * slower_anyway * pair.candidate_row_ns &&
         pair.candidate_step_ns > pair.candidate_row_ns + wake_ns;
}

std::optional<std::string> WorkedAhead(std::span<const StepTimes> pairs, int threads) {
  const auto shows = [threads](const StepTimes& pair) { return WorksAhead(pair, threads); };
  const auto count = std::count_if(pairs.begin(), pairs.end(), shows);
  if (count < 2 || 2 * count <= static_cast<long>(pairs.size())) return std::nullopt;
  const StepTimes& pair = *std::find_if(pairs.begin(), pairs.end(), shows);
  return fmt::format(
      "{:.3g} us a call in a row, {:.3g} us when only the inputs of that call are there (the "
      "baseline: {:.3g} and {:.3g}): it works on calls ahead of their turn",
      pair.candidate_row_ns / 1e3, pair.candidate_step_ns / 1e3, pair.reference_row_ns / 1e3,
      pair.reference_step_ns / 1e3);
}

}  // namespace assay
