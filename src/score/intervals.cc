#include "score/intervals.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "base/check.h"

namespace assay {
namespace {

constexpr double kTail = 0.025;

}  // namespace

std::optional<Interval> MeanInterval(const std::vector<double>& values, uint64_t seed) {
  constexpr size_t kSamples = 2000;
  if (values.size() < 2) return std::nullopt;
  std::mt19937_64 generator(seed);
  std::vector<double> means;
  for (size_t sample = 0; sample < kSamples; ++sample) {
    double sum = 0;
    // The standard's distributions differ from library to library; this one does not.
    for (size_t i = 0; i < values.size(); ++i) sum += values[generator() % values.size()];
    means.push_back(sum / static_cast<double>(values.size()));
  }
  std::sort(means.begin(), means.end());
  const auto at = static_cast<size_t>(kTail * kSamples);
  return Interval{means[at], means[kSamples - 1 - at]};
}

std::optional<Interval> BestOfKInterval(std::vector<double> values, int64_t k) {
  ASSAY_CHECK(k >= 1);
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  const double q = std::pow(0.5, 1 / static_cast<double>(k));
  // below[i]: the chance that at most i values are below the quantile.
  std::vector<double> below;
  double sum = 0;
  for (double i = 0; i <= n; ++i) {
    sum += std::exp(std::lgamma(n + 1) - std::lgamma(i + 1) - std::lgamma(n - i + 1) +
                    i * std::log(q) + (n - i) * std::log1p(-q));
    below.push_back(sum);
  }
  // The value of rank r (from 1) is over the quantile if fewer than r are below it.
  std::optional<size_t> low, high;
  for (size_t rank = 1; rank <= values.size(); ++rank) {
    if (below[rank - 1] <= kTail) low = rank;
    if (!high && below[rank - 1] >= 1 - kTail) high = rank;
  }
  if (!low || !high) return std::nullopt;
  return Interval{values[*low - 1], values[*high - 1]};
}

}  // namespace assay
