#include "report/roofline_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/sample_verdicts.h"

namespace assay {
namespace {

using testing::HasSubstr;

Verdict Bounded() {
  Verdict verdict = SampleVerdict(Outcome::kFaster);
  verdict.work = Work();
  verdict.work->operations = 1e6;
  verdict.work->bytes = 1e6;
  verdict.work->unfused_bytes = 4e6;
  verdict.roofline = Roofline();
  Roofline& roofline = *verdict.roofline;
  roofline.bandwidth_bytes_s = 1e10;
  roofline.rate_operations_s = 1e11;
  roofline.instructions = "avx2";
  roofline.empty_call_ns = 100;
  roofline.bound_ns = 1e5;
  roofline.regime = "memory";
  roofline.percent_of_peak = 50;
  roofline.reference_percent_of_peak = 12;
  BaselineResult& result = verdict.speed->baselines.at(verdict.speed->headline);
  result.candidate_time_ns = 2e5;
  result.time_ns = 8e5;
  return verdict;
}

TEST(RooflineChart, PointsStandAtTheirRates) {
  Verdict verdict = Bounded();
  const auto chart =
      MakeRooflineChart(std::vector<RooflineVersion>{{"v1", ChartSide::kFirst, &verdict}});
  ASSERT_TRUE(chart) << chart.error().message;
  ASSERT_EQ(chart->points.size(), 2u);
  EXPECT_EQ(chart->points[0].side, ChartSide::kBaseline);
  EXPECT_DOUBLE_EQ(chart->points[0].intensity, 0.25);  // of four times the bytes
  EXPECT_DOUBLE_EQ(chart->points[1].intensity, 1);
  EXPECT_DOUBLE_EQ(chart->points[1].rate, 5e9);
  EXPECT_DOUBLE_EQ(chart->BoundRate(), 1e10);  // the bandwidth's: an operation a byte
}

TEST(RooflineChart, ItIsAPictureAndATable) {
  Verdict verdict = Bounded();
  verdict.bottleneck = "spills <registers>";
  verdict.problem.name = "a<b";
  const auto chart =
      MakeRooflineChart(std::vector<RooflineVersion>{{"v<1>", ChartSide::kSecond, &verdict}});
  ASSERT_TRUE(chart);
  const std::string svg = RenderRooflineSvg(*chart, true, "r");
  EXPECT_THAT(svg, HasSubstr("<title id=\"r-title\">Roofline of a&lt;b, small</title>"));
  EXPECT_THAT(svg, HasSubstr("v&lt;1&gt;: 200 us, 50% of the bound."));
  EXPECT_THAT(svg, HasSubstr("prefers-color-scheme:dark"));
  EXPECT_THAT(RenderRooflineSvg(*chart, false, "r"), testing::Not(HasSubstr("<style>")));
  CardStyle style;
  style.unicode = false;
  const std::string text = RenderRooflineText(*chart, style);
  EXPECT_THAT(text, HasSubstr("v<1>              200 us    5.00 GFLOP/s   50.0%  ###############"));
  EXPECT_THAT(text, HasSubstr("spills <registers>"));
}

TEST(RooflineChart, OneChartHasOneProblemAndOneMachine) {
  Verdict verdict = Bounded(), other = Bounded();
  const auto fault = [&] {
    const auto chart = MakeRooflineChart(std::vector<RooflineVersion>{
        {"v1", ChartSide::kFirst, &verdict}, {"v2", ChartSide::kFirst, &other}});
    return chart ? std::string("none") : chart.error().message;
  };
  EXPECT_EQ(fault(), "none");
  other.problem.size = "large";
  EXPECT_THAT(fault(), HasSubstr("v2 was judged on another problem or at another size"));
  other = Bounded();
  other.machine.threads = 7;
  EXPECT_THAT(fault(), HasSubstr("v2 was judged on another machine"));
  other = Bounded();
  other.work->operations = 0;
  EXPECT_THAT(fault(), HasSubstr("operations of"));
}

TEST(RooflineChart, WithoutABoundThereIsNone) {
  Verdict verdict = SampleVerdict(Outcome::kWrong);
  const auto chart =
      MakeRooflineChart(std::vector<RooflineVersion>{{"v1", ChartSide::kFirst, &verdict}});
  ASSERT_FALSE(chart);
  EXPECT_THAT(chart.error().message, HasSubstr("assay doctor"));
}

}  // namespace
}  // namespace assay
