#include "rules/warm_up.h"

#include <algorithm>

namespace assay {
namespace {

// The last calls that must agree, within a factor.
constexpr size_t kFlatCalls = 3;
constexpr double kFlat = 1.1;
// Faults of a call that are no sign of growing memory.
constexpr int64_t kFewFaults = 16;
// Calls that fault as often as each other, in a row, before that is taken for the program's way.
constexpr size_t kSteadyCalls = 16;
constexpr size_t kCallsMax = 64;

}  // namespace

void WarmUpWatch::Add(double time_ns, int64_t page_faults) {
  times_ns_.push_back(time_ns);
  page_faults_.push_back(page_faults);
}

bool WarmUpWatch::Alike(size_t count) const {
  const auto [least, most] =
      std::minmax_element(page_faults_.end() - static_cast<long>(count), page_faults_.end());
  return *most <= kFewFaults || static_cast<double>(*most) <= kFlat * static_cast<double>(*least);
}

bool WarmUpWatch::Warm() const {
  const size_t count = times_ns_.size();
  if (count >= kCallsMax) return true;
  if (count < kFlatCalls) return false;
  const auto [fastest, slowest] =
      std::minmax_element(times_ns_.end() - static_cast<long>(kFlatCalls), times_ns_.end());
  if (*slowest > kFlat * *fastest) return false;
  const bool grows = *std::max_element(page_faults_.end() - static_cast<long>(kFlatCalls),
                                       page_faults_.end()) > kFewFaults;
  return !grows || (count >= kSteadyCalls && Alike(kSteadyCalls));
}

}  // namespace assay
