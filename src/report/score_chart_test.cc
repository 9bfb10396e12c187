#include "report/score_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Score ScoreWith(std::vector<double> speedups) {
  Score score;
  score.asked = static_cast<int64_t>(speedups.size());
  score.baseline = "eager";
  score.plain = {{0, score.asked}};
  for (const double speedup : speedups) {
    ProblemScore problem;
    problem.speedup = speedup;
    score.problems.push_back(problem);
    score.plain.push_back({speedup, score.plain.back().count - 1});
  }
  score.certified = score.plain;
  return score;
}

TEST(ScoreChart, TheAxisAdaptsToTheRatios) {
  const auto range = [](std::vector<double> speedups) {
    const CurveAxis axis = AxisOf(ScoreWith(std::move(speedups)));
    return std::pair(axis.low, axis.high);
  };
  EXPECT_EQ(range({}), std::pair(-2, 2));
  EXPECT_EQ(range({0.7, 1.3, 2.5}), std::pair(-2, 2));
  EXPECT_EQ(range({4}), std::pair(-2, 3));  // 4 is not its end
  EXPECT_EQ(range({0.1, 30}), std::pair(-4, 5));
  EXPECT_EQ(range({1e-9, 1e9}), std::pair(-6, 10));
}

TEST(ScoreChart, RoundingClaimsNeitherNoneNorAll) {
  EXPECT_EQ(FormatPercent(0), "0%");
  EXPECT_EQ(FormatPercent(0.0001), "<1%");
  EXPECT_EQ(FormatPercent(0.4), "40%");
  EXPECT_EQ(FormatPercent(0.9999), ">99%");
  EXPECT_EQ(FormatPercent(1), "100%");
}

TEST(ScoreChart, ThePictureSaysInWordsWhatItShows) {
  const std::string svg = RenderCurveSvg(ScoreWith({0.7, 1.3, 2.5, 6}));
  EXPECT_THAT(svg, HasSubstr("<title id=\"title\">fast_p of 4 problems against eager</title>"));
  EXPECT_THAT(svg, HasSubstr("More than 1 times as fast: 75% plain, 75% certified."));
  EXPECT_THAT(svg, HasSubstr("stroke-dasharray"));
  EXPECT_THAT(svg, HasSubstr("certified (fast_1 = 75%)"));
}

TEST(ScoreChart, NamesCannotBreakThePicture) {
  Score score = ScoreWith({2});
  score.baseline = "<script>&\"\x1b";
  const std::string svg = RenderCurveSvg(score);
  EXPECT_THAT(svg, HasSubstr("&lt;script&gt;&amp;&quot;?"));
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
}

}  // namespace
}  // namespace assay
