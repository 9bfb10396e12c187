#include "report/sustained_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/median.h"
#include "report/text.h"

namespace assay {
namespace {

// Blocks differ by as much anyway: a smaller difference says nothing of clocks.
constexpr double kApart = 0.02;

double MedianMhz(const std::vector<int>& mhz, size_t from) {
  std::vector<double> values;
  for (size_t i = from; i < mhz.size(); ++i)
    if (mhz[i] > 0) values.push_back(mhz[i]);
  return Median(std::move(values));
}

// The clock's in the blocks of one side of pairs with this baseline; 0: not known.
double PairsMhz(const Verdict& verdict, const std::string& baseline, char side) {
  std::vector<double> values;
  for (const PairSamples& pair : verdict.samples)
    for (size_t i = 0; pair.baseline == baseline && i < pair.sm_mhz.size() && i < pair.order.size();
         ++i)
      if (pair.order[i] == side && pair.sm_mhz[i] > 0) values.push_back(pair.sm_mhz[i]);
  return Median(std::move(values));
}

std::string Times(const SustainedSide& side) {
  const double quickest_ns =
      static_cast<double>(*std::min_element(side.block_ns.begin(), side.block_ns.end())) /
      side.calls_per_block;
  const double more = side.time_ns / quickest_ns - 1;
  if (more <= kApart)
    return fmt::format("{} a call from begin to end", FormatDuration(side.time_ns));
  return fmt::format("{} a call in the end, {:.0f}% more than in its quickest block ({})",
                     FormatDuration(side.time_ns), 100 * more, FormatDuration(quickest_ns));
}

std::string Clock(const SustainedSide& side, double short_mhz) {
  const double mhz = MedianMhz(side.sm_mhz, side.sm_mhz.size() / 2);
  if (mhz == 0) return {};
  std::string text = fmt::format("; {:.0f} MHz", mhz);
  if (short_mhz > 0 && short_mhz - mhz > kApart * short_mhz)
    text += fmt::format(" where short blocks had {:.0f}", short_mhz);
  if (!side.clock_limits.empty())
    text += fmt::format(" (held down: {})", fmt::join(side.clock_limits, ", "));
  return text;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> SustainedFacts(const Verdict& verdict) {
  if (!verdict.sustained || !verdict.speed) return {};
  const SustainedRecord& record = *verdict.sustained;
  const auto line = [&](const SustainedSide& side, char letter) {
    if (side.block_ns.empty() || side.calls_per_block < 1) return std::string("no blocks");
    return Times(side) + Clock(side, PairsMhz(verdict, record.baseline, letter));
  };
  const std::string other = record.baseline == "against" ? "other" : record.baseline;
  return {
      {other, line(record.reference, 'r')},
      {"candidate", line(record.candidate, 'c')},
      {"sustained", fmt::format("{} as fast as {}, after {:g} s of each without a pause",
                                FormatRatio(record.reference.time_ns / record.candidate.time_ns),
                                other, record.seconds)}};
}

}  // namespace assay
