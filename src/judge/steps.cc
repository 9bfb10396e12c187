#include "judge/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace assay {

bool WorksAhead(const StepTimes& pair, double wake_ns, double slower_anyway) {
  return pair.candidate_step_ns > kStepRatioMax * slower_anyway * pair.candidate_row_ns &&
         pair.candidate_step_ns > pair.candidate_row_ns + wake_ns;
}

namespace {

// How many times longer the baseline's steps take. What slows steps as such does so in every pair;
// in one, it may be noise.
double SlowerAnyway(std::span<const StepTimes> pairs) {
  double slower = std::numeric_limits<double>::infinity();
  for (const StepTimes& pair : pairs)
    slower = std::min(slower, pair.reference_step_ns / pair.reference_row_ns);
  return std::max(1.0, slower);
}

}  // namespace

std::optional<std::string> FasterInARow(std::span<const StepTimes> pairs) {
  const double slower_anyway = SlowerAnyway(pairs);
  const auto shows = [&](const StepTimes& pair) {
    const double waking_ns = std::max(0.0, pair.reference_step_ns - pair.reference_row_ns);
    return WorksAhead(pair, waking_ns + kAloneOnDeviceNs, slower_anyway);
  };
  const auto count = std::count_if(pairs.begin(), pairs.end(), shows);
  if (count < 2 || 2 * count <= static_cast<long>(pairs.size())) return std::nullopt;
  const StepTimes& pair = *std::find_if(pairs.begin(), pairs.end(), shows);
  return fmt::format(
      "{:.3g} us a call in a row, and {:.3g} us alone (the baseline: {:.3g} and {:.3g}): whether "
      "it "
      "is faster by itself or by what it keeps from call to call cannot be told at this size",
      pair.candidate_row_ns / 1e3, pair.candidate_step_ns / 1e3, pair.reference_row_ns / 1e3,
      pair.reference_step_ns / 1e3);
}

std::optional<std::string> WorkedAhead(std::span<const StepTimes> pairs, double wake_ns) {
  const double slower_anyway = SlowerAnyway(pairs);
  const auto shows = [&](const StepTimes& pair) {
    return WorksAhead(pair, wake_ns, slower_anyway);
  };
  const auto count = std::count_if(pairs.begin(), pairs.end(), shows);
  if (count < 2 || 2 * count <= static_cast<long>(pairs.size())) return std::nullopt;
  const StepTimes& pair = *std::find_if(pairs.begin(), pairs.end(), shows);
  return fmt::format(
      "{:.3g} us a call in a row, {:.3g} us when only the inputs of that call are there (the "
      "baseline: {:.3g} and {:.3g}): it works on calls ahead of their turn",
      pair.candidate_row_ns / 1e3, pair.candidate_step_ns / 1e3, pair.reference_row_ns / 1e3,
      pair.reference_step_ns / 1e3);
}

std::optional<std::string> KeptWork(std::span<const StepTimes> pairs, double wake_ns) {
  std::vector<StepTimes> changed;
  for (const StepTimes& pair : pairs)
    if (pair.reference_changed_ns > 0 && pair.candidate_changed_ns > 0)
      changed.push_back({pair.reference_step_ns, pair.candidate_step_ns, pair.reference_changed_ns,
                         pair.candidate_changed_ns});
  if (!WorkedAhead(changed, wake_ns)) return std::nullopt;
  const StepTimes& pair = changed[changed.size() / 2];
  return fmt::format(
      "{:.3g} us a call, and {:.3g} us after weights have changed (the baseline: {:.3g} and "
      "{:.3g}): "
      "it keeps work on weights from call to call, which only --weights constant allows",
      pair.candidate_row_ns / 1e3, pair.candidate_step_ns / 1e3, pair.reference_row_ns / 1e3,
      pair.reference_step_ns / 1e3);
}

}  // namespace assay
