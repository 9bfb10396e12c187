#include "rules/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "base/median.h"

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

// The first pair that shows it, where more than half of them, and at least two, do; else null.
template <typename Shows>
const StepTimes* Shown(std::span<const StepTimes> pairs, const Shows& shows) {
  const auto count = std::count_if(pairs.begin(), pairs.end(), shows);
  if (count < 2 || 2 * count <= static_cast<long>(pairs.size())) return nullptr;
  return &*std::find_if(pairs.begin(), pairs.end(), shows);
}

}  // namespace

std::optional<GainInARow> FasterInARow(std::span<const StepTimes> pairs, double allowed_ns,
                                       double gain_needed) {
  const double slower_anyway = SlowerAnyway(pairs);
  const StepTimes* pair = Shown(pairs, [&](const StepTimes& each) {
    const double longer_ns = std::max(0.0, each.reference_step_ns - each.reference_row_ns);
    return WorksAhead(each, allowed_ns + longer_ns, slower_anyway) ||
           (WorksAhead(each, 0, slower_anyway) &&
            each.reference_step_ns <= gain_needed * each.candidate_step_ns);
  });
  if (pair == nullptr) return std::nullopt;
  std::vector<double> alone;
  for (const StepTimes& each : pairs)
    alone.push_back(each.reference_step_ns / each.candidate_step_ns);
  return GainInARow{
      fmt::format("{:.3g} us a call in a row, and {:.3g} us alone (the baseline: {:.3g} and "
                  "{:.3g}): how much of it is kept from call to call cannot be told",
                  pair->candidate_row_ns / 1e3, pair->candidate_step_ns / 1e3,
                  pair->reference_row_ns / 1e3, pair->reference_step_ns / 1e3),
      Median(std::move(alone))};
}

std::optional<std::string> WorkedAhead(std::span<const StepTimes> pairs, double wake_ns) {
  const double slower_anyway = SlowerAnyway(pairs);
  const StepTimes* shown =
      Shown(pairs, [&](const StepTimes& each) { return WorksAhead(each, wake_ns, slower_anyway); });
  if (shown == nullptr) return std::nullopt;
  const StepTimes& pair = *shown;
  return fmt::format(
      "{:.3g} us a call in a row, {:.3g} us when only the inputs of that call are there (the "
      "baseline: {:.3g} and {:.3g}): it works on calls ahead of their turn",
      pair.candidate_row_ns / 1e3, pair.candidate_step_ns / 1e3, pair.reference_row_ns / 1e3,
      pair.reference_step_ns / 1e3);
}

}  // namespace assay
