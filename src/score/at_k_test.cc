#include "score/at_k.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>

namespace assay {
namespace {

// The mean over every choice of k of the values, by counting them all.
template <typename Measure>
double OverAllChoices(const std::vector<double>& values, int64_t k, Measure measure) {
  double sum = 0;
  int64_t choices = 0;
  for (uint32_t mask = 0; mask < (1u << values.size()); ++mask) {
    if (std::popcount(mask) != k) continue;
    double largest = 0;
    for (size_t i = 0; i < values.size(); ++i)
      if ((mask >> i & 1u) != 0) largest = std::max(largest, values[i]);
    sum += measure(largest);
    ++choices;
  }
  return sum / static_cast<double>(choices);
}

TEST(AtK, AgreesWithCountingEveryChoice) {
  const std::vector<double> values{0, 2.5, 0.7, 0, 1.3, 1.3, 0, 4, 0.2};
  const auto n = static_cast<int64_t>(values.size());
  for (int64_t k = 1; k <= n; ++k) {
    EXPECT_NEAR(BestAtK(values, k), OverAllChoices(values, k, [](double x) { return x; }), 1e-12);
    for (const double p : {0.0, 1.0, 3.9, 9.0}) {
      const auto c = std::count_if(values.begin(), values.end(), [&](double x) { return x > p; });
      EXPECT_NEAR(PassAtK(n, c, k),
                  OverAllChoices(values, k, [&](double x) { return x > p ? 1.0 : 0.0; }), 1e-12)
          << k << " " << p;
    }
  }
}

TEST(AtK, KnownValues) {
  EXPECT_DOUBLE_EQ(PassAtK(1, 1, 1), 1);
  EXPECT_DOUBLE_EQ(PassAtK(10, 3, 1), 0.3);
  EXPECT_NEAR(PassAtK(10, 3, 5), 1 - 21.0 / 252, 1e-12);  // 1 - C(7, 5) / C(10, 5)
  EXPECT_DOUBLE_EQ(PassAtK(10, 0, 5), 0);
  EXPECT_DOUBLE_EQ(PassAtK(10, 6, 5), 1);  // five cannot avoid six of ten
  EXPECT_DOUBLE_EQ(BestAtK({1, 2, 3}, 1), 2);
  EXPECT_DOUBLE_EQ(BestAtK({1, 2, 3}, 3), 3);
}

TEST(AtK, ManyAttemptsLoseNoPrecision) {
  EXPECT_NEAR(PassAtK(100000, 1, 10), 1e-4, 1e-12);
  EXPECT_NEAR(BestAtK(std::vector<double>(100000, 1.5), 1000), 1.5, 1e-9);
}

TEST(AtKDeathTest, FewerThanKAttemptsIsABug) {
  EXPECT_DEATH(PassAtK(3, 1, 4), "");
  EXPECT_DEATH(BestAtK({}, 1), "");
}

}  // namespace
}  // namespace assay
