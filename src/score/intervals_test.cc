#include "score/intervals.h"

#include <gmock/gmock.h>

#include <cmath>
#include <numeric>
#include <random>

namespace assay {
namespace {

using testing::DoubleNear;

TEST(MeanInterval, IsThatOfANormalMean) {
  std::mt19937_64 generator(3);
  std::normal_distribution<double> normal(5, 2);
  std::vector<double> values(400);
  for (double& value : values) value = normal(generator);
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / 400;
  const auto interval = MeanInterval(values, 1);
  ASSERT_TRUE(interval);
  EXPECT_THAT(interval->low, DoubleNear(mean - 1.96 * 2 / 20, 0.03));
  EXPECT_THAT(interval->high, DoubleNear(mean + 1.96 * 2 / 20, 0.03));
}

TEST(MeanInterval, RepeatsWithItsSeedAndNeedsTwoValues) {
  const std::vector<double> values{1, 2, 3, 5, 8};
  EXPECT_EQ(MeanInterval(values, 1)->low, MeanInterval(values, 1)->low);
  EXPECT_FALSE(MeanInterval({1}, 1));
  EXPECT_EQ(MeanInterval({2, 2, 2}, 1)->high, 2);
}

TEST(BestOfKInterval, OfOneIsThatOfTheMedian) {
  std::vector<double> values(20);
  std::iota(values.begin(), values.end(), 1);
  // The usual table of sign tests: ranks 6 and 15 of 20.
  const auto interval = BestOfKInterval(values, 1);
  ASSERT_TRUE(interval);
  EXPECT_EQ(interval->low, 6);
  EXPECT_EQ(interval->high, 15);
}

TEST(BestOfKInterval, HoldsTheTrueQuantileAtLeastAsOftenAsItSays) {
  std::mt19937_64 generator(5);
  std::uniform_real_distribution<double> uniform(0, 1);
  const double truth = std::pow(0.5, 1.0 / 4);
  int held = 0, given = 0;
  for (int trial = 0; trial < 500; ++trial) {
    std::vector<double> values(60);
    for (double& value : values) value = uniform(generator);
    const auto interval = BestOfKInterval(values, 4);
    if (!interval) continue;
    ++given;
    held += interval->low <= truth && truth <= interval->high ? 1 : 0;
  }
  EXPECT_EQ(given, 500);
  EXPECT_GE(held, 465);  // 95% are 475; 3 deviations less are 460
}

TEST(BestOfKInterval, NeedsEnoughValues) {
  EXPECT_FALSE(BestOfKInterval({}, 1));
  EXPECT_FALSE(BestOfKInterval({1, 2, 3}, 1));
  EXPECT_FALSE(BestOfKInterval(std::vector<double>(20, 1.0), 50));
}

}  // namespace
}  // namespace assay
