// The median of measurements.
#pragma once

#include <algorithm>
#include <vector>

namespace assay {

// Of an even number of values, the mean of the two in the middle; 0 if there are none.
inline double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  if (values.size() % 2 == 1) return values[middle];
  return (values[middle - 1] + values[middle]) / 2;
}

}  // namespace assay
