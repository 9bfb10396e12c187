#include "rules/head_start.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/median.h"

namespace assay {

double MedianOfSide(char side, std::string_view order, std::span<const int64_t> values_ns) {
  std::vector<double> values;
  for (size_t i = 0; i < std::min(order.size(), values_ns.size()); ++i)
    if (order[i] == side) values.push_back(static_cast<double>(values_ns[i]));
  return values.empty() ? 0 : Median(std::move(values));
}

double MedianExcessNs(std::string_view order, std::span<const int64_t> times_ns) {
  return MedianOfSide('c', order, times_ns) - MedianOfSide('r', order, times_ns);
}

namespace {

std::vector<int64_t> ChargesNs(std::string_view order, std::span<const int64_t> times_ns,
                               double excess_ns, int64_t free_ns) {
  const int64_t of_all_ns = std::max<int64_t>(0, std::llround(excess_ns) - kWakeDifferenceNs);
  std::vector<int64_t> charges_ns;
  for (size_t i = 0; i < std::min(order.size(), times_ns.size()); ++i)
    if (order[i] == 'c') charges_ns.push_back(std::max(of_all_ns, times_ns[i] - free_ns));
  return charges_ns;
}

// The longest may be an accident. Of one time: that one.
int64_t SecondLongest(char side, std::string_view order, std::span<const int64_t> times_ns) {
  int64_t longest_ns = 0, second_ns = 0;
  int count = 0;
  for (size_t i = 0; i < std::min(order.size(), times_ns.size()); ++i) {
    if (order[i] != side) continue;
    ++count;
    second_ns = std::max(second_ns, std::min(longest_ns, times_ns[i]));
    longest_ns = std::max(longest_ns, times_ns[i]);
  }
  return count > 1 ? second_ns : longest_ns;
}

}  // namespace

int64_t WakeFreeNs(std::string_view order, std::span<const int64_t> woken_ns) {
  return SecondLongest('r', order, woken_ns) + kWakeSpikeNs;
}

std::vector<int64_t> WakeChargesNs(std::string_view order, std::span<const int64_t> woken_ns,
                                   double excess_ns) {
  return ChargesNs(order, woken_ns, excess_ns, WakeFreeNs(order, woken_ns));
}

std::vector<int64_t> LookChargesNs(std::string_view order, std::span<const int64_t> look_ns) {
  return ChargesNs(order, look_ns, MedianExcessNs(order, look_ns),
                   std::llround(MedianOfSide('r', order, look_ns)) + kLookSpikeNs);
}

}  // namespace assay
