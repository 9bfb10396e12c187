#include "rules/pairs_so_far.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace assay {
namespace {

std::vector<double> LogsOf(std::vector<double> factors) {
  for (double& factor : factors) factor = std::log(factor);
  return factors;
}

SpeedRule Rule(double threshold) { return {.threshold = threshold, .delta = 0.01}; }

TEST(PairsSoFar, CountsThePairsBeyondTheNoiseFloor) {
  const auto sum = SumUp(LogsOf({1.03, 1.03, 1.005, 1.04}), Rule(1), 4, 56);
  EXPECT_EQ(PairsText(sum), "3 of 4 pairs over 1.01x, up to 28 s more");
}

TEST(PairsSoFar, CountsThoseBelowWhereTheCandidateIsSlower) {
  const auto sum = SumUp(LogsOf({0.9, 0.9, 0.995}), Rule(1), 1.5, 60);
  EXPECT_EQ(PairsText(sum), "2 of 3 pairs below 0.99x, up to 15 s more");
}

TEST(PairsSoFar, TakesTheThresholdThatWasAskedFor) {
  const auto sum = SumUp(LogsOf({1.3, 1.6, 1.7}), Rule(1.5), 1, 60);
  EXPECT_EQ(sum.beyond, 2);
  EXPECT_NEAR(sum.factor, 1.515, 0.001);
}

TEST(PairsSoFar, NamesNoMoreTimeThanTheBudgetHas) {
  EXPECT_EQ(SumUp(LogsOf({1, 1, 1}), Rule(1), 55, 5).seconds_left, 5);
  EXPECT_EQ(SumUp(LogsOf({1, 1, 1}), Rule(1), 61, -1).seconds_left, 0);
}

TEST(PairsSoFar, NamesNothingToComeAfterTheLastPair) {
  const auto sum = SumUp(std::vector<double>(32, 0.02), Rule(1), 30, 30);
  EXPECT_EQ(PairsText(sum), "32 of 32 pairs over 1.01x");
}

}  // namespace
}  // namespace assay
