#include "judge/clock_note.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/median.h"

namespace assay {
namespace {

constexpr double kApart = 0.02;

}  // namespace

std::string ClockNote(const std::vector<PairSamples>& samples, const std::string& baseline) {
  std::vector<double> reference, candidate;
  std::vector<std::string> limits;
  for (const PairSamples& pair : samples) {
    if (pair.baseline != baseline || pair.sm_mhz.size() != pair.order.size()) continue;
    for (size_t i = 0; i < pair.order.size(); ++i)
      (pair.order[i] == 'c' ? candidate : reference).push_back(pair.sm_mhz[i]);
    for (const std::string& limit : pair.clock_limits)
      if (std::find(limits.begin(), limits.end(), limit) == limits.end()) limits.push_back(limit);
  }
  if (reference.empty() || candidate.empty()) return {};
  const double of_reference = Median(reference), of_candidate = Median(candidate);
  const std::string held =
      limits.empty() ? "" : fmt::format(" (held down by: {})", fmt::join(limits, ", "));
  if (std::abs(of_candidate - of_reference) >= kApart * of_reference)
    return fmt::format(
        "the GPU's clock was {:.0f} MHz in its blocks and {:.0f} MHz in the other's{}",
        of_candidate, of_reference, held);
  if (limits.empty()) return {};
  return fmt::format("the GPU's clock, {:.0f} MHz, was held down by: {}", of_candidate,
                     fmt::join(limits, ", "));
}

}  // namespace assay
