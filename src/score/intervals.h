// 95% intervals of means over problems, and of the best of k attempts at one. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace assay {

struct Interval {
  double low = 0, high = 0;
};

// Of the mean, if the values are a sample of similar problems: the 2.5% and 97.5% quantiles of the
// means of 2,000 samples with replacement (Efron, "Bootstrap Methods: Another Look at the
// Jackknife", Annals of Statistics 7, 1979). The same values and seed give the same interval.
// nullopt: fewer than two values.
std::optional<Interval> MeanInterval(const std::vector<double>& values, uint64_t seed);

// Of the median of the best of k attempts: the quantile q = 0.5^(1/k) of one attempt, since all k
// stay below it with the chance q^k. Exact whatever the distribution: the order statistics between
// which q lies with a chance of 95%, by the binomial distribution. nullopt: too few values.
std::optional<Interval> BestOfKInterval(std::vector<double> values, int64_t k);

}  // namespace assay
