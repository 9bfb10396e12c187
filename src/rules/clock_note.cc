#include "rules/clock_note.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <map>

#include "base/median.h"

namespace assay {
namespace {

constexpr double kApart = 0.02;
// A limit that shows in fewer of the pairs is no finding.
constexpr double kPairsShare = 0.25;

}  // namespace

std::string ClockNote(const std::vector<PairSamples>& samples, const std::string& baseline) {
  std::vector<double> reference, candidate;
  std::map<std::string, int> limited;
  int pairs = 0;
  for (const PairSamples& pair : samples) {
    if (pair.baseline != baseline || pair.sm_mhz.size() != pair.order.size()) continue;
    ++pairs;
    for (size_t i = 0; i < pair.order.size(); ++i)
      if (pair.sm_mhz[i] > 0)
        (pair.order[i] == 'c' ? candidate : reference).push_back(pair.sm_mhz[i]);
    for (const std::string& limit : pair.clock_limits) ++limited[limit];
  }
  if (reference.empty() || candidate.empty()) return {};
  std::vector<std::string> limits;
  for (const auto& [limit, count] : limited)
    if (count >= kPairsShare * pairs)
      limits.push_back(fmt::format("{} in {} of {} pairs", limit, count, pairs));
  const std::string held = fmt::format("{}", fmt::join(limits, ", "));
  const double of_reference = Median(reference), of_candidate = Median(candidate);
  if (std::abs(of_candidate - of_reference) >= kApart * of_reference)
    return fmt::format(
        "the GPU's clock was {:.0f} MHz in the candidate's blocks and {:.0f} MHz in "
        "the other side's{}{}{}",
        of_candidate, of_reference, held.empty() ? "" : " (held down: ", held,
        held.empty() ? "" : ")");
  if (held.empty()) return {};
  return fmt::format("the GPU's clock, {:.0f} MHz, was held down: {}", of_candidate, held);
}

}  // namespace assay
