#include "judge/head_start.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace assay {
namespace {

int64_t MedianOf(char side, std::string_view order, std::span<const int64_t> woken_ns) {
  std::vector<int64_t> values;
  for (size_t i = 0; i < std::min(order.size(), woken_ns.size()); ++i)
    if (order[i] == side) values.push_back(woken_ns[i]);
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<long>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

int64_t HeadStartNs(std::string_view order, std::span<const int64_t> woken_ns) {
  const int64_t longer_ns = MedianOf('c', order, woken_ns) - MedianOf('r', order, woken_ns);
  return std::max<int64_t>(0, longer_ns - kWakeDifferenceNs);
}

}  // namespace assay
