// The median of measurements.
#pragma once

#include <algorithm>
#include <vector>

namespace assay {

// The mean of the two in the middle where their number is even; 0 where there are none.
inline double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  if (values.size() % 2 == 1) return values[middle];
  return (values[middle - 1] + values[middle]) / 2;
}

}  // namespace assay
