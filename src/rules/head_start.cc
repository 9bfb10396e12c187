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

std::vector<int64_t> LookChargesNs(std::string_view order, std::span<const int64_t> look_ns) {
  const int64_t of_all_ns = HeadStartNs(order, look_ns);
  const int64_t opponents_ns = std::llround(MedianOfSide('r', order, look_ns));
  std::vector<int64_t> charges_ns;
  for (size_t i = 0; i < std::min(order.size(), look_ns.size()); ++i)
    if (order[i] == 'c')
      charges_ns.push_back(std::max(of_all_ns, look_ns[i] - opponents_ns - kLookSpikeNs));
  return charges_ns;
}

int64_t HeadStartNs(std::string_view order, std::span<const int64_t> woken_ns) {
  const double longer_ns = MedianOfSide('c', order, woken_ns) - MedianOfSide('r', order, woken_ns);
  return std::max<int64_t>(0, std::llround(longer_ns) - kWakeDifferenceNs);
}

}  // namespace assay
