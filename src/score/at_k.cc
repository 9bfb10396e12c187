#include "score/at_k.h"

#include <algorithm>

#include "base/check.h"

namespace assay {

double PassAtK(int64_t n, int64_t c, int64_t k) {
  ASSAY_CHECK(0 <= c && c <= n && 1 <= k && k <= n);
  double none = 1;  // chance that no attempt qualifies
  for (int64_t i = n - c + 1; i <= n; ++i)
    none *= std::max(0.0, 1 - static_cast<double>(k) / static_cast<double>(i));
  return 1 - none;
}

double BestAtK(std::vector<double> values, int64_t k) {
  const auto n = static_cast<int64_t>(values.size());
  ASSAY_CHECK(1 <= k && k <= n);
  std::sort(values.begin(), values.end());
  double expected = 0;
  double weight = static_cast<double>(k) / static_cast<double>(n);  // of the largest value
  for (int64_t i = n; i >= k; --i) {
    expected += weight * values[static_cast<size_t>(i - 1)];
    // C(i - 2, k - 1) / C(i - 1, k - 1); at i = k nothing is left to weigh.
    if (i > 1) weight *= static_cast<double>(i - k) / static_cast<double>(i - 1);
  }
  return expected;
}

}  // namespace assay
