#include "report/learning_chart.h"

#include <gmock/gmock.h>

namespace assay {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(LearningChart, ShowsBothLinesAndTheirEnds) {
  const std::string svg =
      RenderLearningSvg({{1, 0.5, 0.25, 1.1}, {2, 0.75, 0.5, 1.4}, {3, 1, 0.5, 1.62}});
  EXPECT_THAT(svg, AllOf(HasSubstr("after each of 3 rounds"), HasSubstr("correct: 100%"),
                         HasSubstr("certified faster: 50%"), HasSubstr("1.62x"),
                         HasSubstr("M66.0 216.0L401.0 156.0L736.0 96.0"),
                         HasSubstr("M66.0 276.0L401.0 216.0L736.0 216.0")));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

TEST(LearningChart, ShowsOneRoundAsADot) {
  EXPECT_THAT(RenderLearningSvg({{1, 0.5, 0.25, 1.1}}), HasSubstr("<circle cx=\"401.0\""));
}

TEST(LearningChart, LabelsFewOfManyRounds) {
  const std::string svg = RenderLearningSvg(std::vector<LearningPoint>(1000));
  EXPECT_LT(svg.size(), 40'000u);
}

}  // namespace
}  // namespace assay
