#include "judge/head_start.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/median.h"

namespace assay {
namespace {

double MedianOf(char side, std::string_view order, std::span<const int64_t> woken_ns) {
  std::vector<double> values;
  for (size_t i = 0; i < std::min(order.size(), woken_ns.size()); ++i)
    if (order[i] == side) values.push_back(static_cast<double>(woken_ns[i]));
  return Median(std::move(values));
}

}  // namespace

int64_t HeadStartNs(std::string_view order, std::span<const int64_t> woken_ns) {
  const double longer_ns = MedianOf('c', order, woken_ns) - MedianOf('r', order, woken_ns);
  return std::max<int64_t>(0, std::llround(longer_ns) - kWakeDifferenceNs);
}

}  // namespace assay
