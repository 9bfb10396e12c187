#include "score/learning.h"

#include <gmock/gmock.h>

#include <cmath>

namespace assay {
namespace {

Attempt With(Stage stage, double speedup) {
  Attempt attempt;
  attempt.stage = stage;
  attempt.speedup = speedup;
  attempt.certified_speedup = stage == Stage::kFaster ? 0.95 * speedup : 0;
  return attempt;
}

TEST(LearningCurve, KeepsTheBestOfEachProblemSoFar) {
  const std::vector<std::vector<Attempt>> problems = {
      {With(Stage::kBuilt, 0), With(Stage::kFaster, 4), With(Stage::kCorrect, 0.5)},
      {With(Stage::kCorrect, 0.8)}};
  const auto curve = LearningCurve(problems, 4);
  ASSERT_EQ(curve.size(), 3u);
  EXPECT_EQ(curve[0].correct, 0.25);
  EXPECT_EQ(curve[0].certified, 0);
  EXPECT_EQ(curve[0].mean_speedup, 1);
  for (const size_t round : {size_t{1}, size_t{2}}) {
    EXPECT_EQ(curve[round].correct, 0.5);
    EXPECT_EQ(curve[round].certified, 0.25);
    EXPECT_DOUBLE_EQ(curve[round].mean_speedup, std::pow(4, 0.25));
  }
  EXPECT_EQ(curve[2].round, 3);
}

TEST(LearningCurve, OfNoAttemptsIsEmpty) {
  EXPECT_TRUE(LearningCurve({}, 3).empty());
  EXPECT_TRUE(LearningCurve({{}, {}}, 3).empty());
}

}  // namespace
}  // namespace assay
