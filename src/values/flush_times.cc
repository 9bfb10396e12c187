#include "values/flush_times.h"

#include <algorithm>
#include <vector>

namespace assay {
namespace {

// A quarter of the latest flushes are taken for undisturbed: where all others are, and where the
// device's clock has changed, that still holds soon.
constexpr size_t kLatest = 32;
// Undisturbed ones, the shortest of a few in a row, differ by 2%.
constexpr double kLongerMax = 1.04;

}  // namespace

bool FlushTimes::HadAll(double ms) const {
  if (latest_.empty()) return true;
  std::vector<double> sorted(latest_.begin(), latest_.end());
  const auto quarter = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 4);
  std::nth_element(sorted.begin(), quarter, sorted.end());
  return ms <= kLongerMax * *quarter;
}

void FlushTimes::Add(double ms) {
  latest_.push_back(ms);
  if (latest_.size() > kLatest) latest_.pop_front();
}

}  // namespace assay
