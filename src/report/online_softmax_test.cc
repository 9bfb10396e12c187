#include "report/online_softmax.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay {
namespace {

using Tiles = std::vector<std::vector<double>>;

TEST(OnlineSoftmax, TheBoardsExample) {
  const auto steps = OnlineSoftmaxSteps(Tiles{{1, 3}, {2, 5}});
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].maximum, 3);
  EXPECT_EQ(steps[0].factor, 0);  // nothing came before
  EXPECT_DOUBLE_EQ(steps[0].sum, std::exp(-2) + 1);
  EXPECT_EQ(steps[1].maximum, 5);
  EXPECT_DOUBLE_EQ(steps[1].factor, std::exp(-2));
  EXPECT_DOUBLE_EQ(steps[1].sum, (std::exp(-2) + 1) * std::exp(-2) + std::exp(-3) + 1);
}

TEST(OnlineSoftmax, AgreesWithTwoPassesHoweverTheRowIsCut) {
  const std::vector<double> row{700, -3, 0.5, 701, 2, -1000, 699.25};
  const auto whole = TwoPassSoftmax(Tiles{row});
  for (size_t cut = 1; cut < row.size(); ++cut) {
    const auto middle = row.begin() + static_cast<long>(cut);
    const Tiles tiles{{row.begin(), middle}, {middle, row.end()}};
    const auto online = OnlineSoftmax(tiles);
    double sum = 0;
    for (size_t i = 0; i < row.size(); ++i) {
      EXPECT_NEAR(online[i], whole[i], 1e-15);
      sum += online[i];
    }
    EXPECT_NEAR(sum, 1, 1e-15);
  }
}

TEST(OnlineSoftmaxDeathTest, AnEmptyTileIsABug) { EXPECT_DEATH(OnlineSoftmaxSteps(Tiles{{}}), ""); }

}  // namespace
}  // namespace assay
