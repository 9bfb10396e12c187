#include "swap/model_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Verdict Judged(double speedup) {
  Verdict verdict;
  verdict.outcome = Outcome::kFaster;
  Speed speed;
  speed.headline = "eager";
  BaselineResult result;
  result.time_ns = 1000;
  result.candidate_time_ns = 1000 / speedup;
  result.speedup = speedup;
  result.decision = "faster";
  speed.baselines["eager"] = result;
  verdict.speed = speed;
  return verdict;
}

// A call of 1000 ns of which one place takes 400, another 300.
ModelReport Report() {
  ModelReport report;
  report.title = "A <model>";
  report.machine = "A processor";
  report.tokens = 2;
  report.base_ns = 1000;
  report.lines = {{"norm", "a norm", "norm.cpp", Judged(1.25), PartTime{400, 200}},
                  {"gate", "a gate", "gate.cpp", Judged(1.6), PartTime{300, 100}}};
  report.errors = {{"out", 1e-7, 1.5e-7}, {"out1", 2e-7, 4e-7}};
  AddGains(&report);
  return report;
}

TEST(ModelReport, PredictsByAmdahlAndComparesWithTheJudge) {
  const ModelReport report = Report();
  EXPECT_DOUBLE_EQ(report.lines[0].share_before, 0.4);
  EXPECT_DOUBLE_EQ(report.lines[0].predicted, 1000.0 / 800);
  EXPECT_DOUBLE_EQ(report.lines[0].measured, 1.25);
  // The second line starts from the judged 800 ns.
  EXPECT_DOUBLE_EQ(report.lines[1].share_before, 300.0 / 800);
  EXPECT_DOUBLE_EQ(report.lines[1].predicted, 800.0 / 600);
  EXPECT_DOUBLE_EQ(report.lines[1].measured, 1.6 / 1.25);
}

TEST(ModelReport, ComparesWithPlainKernelsOnAGpu) {
  ModelReport report = Report();
  report.plain = Judged(0.5);
  AddGains(&report);
  EXPECT_DOUBLE_EQ(report.lines[0].measured, 2.5);
}

TEST(ModelReport, BuildsOnPredictionsWhereNothingWasJudged) {
  ModelReport report = Report();
  report.lines[0].verdict.reset();
  report.lines[0].measured = 0;
  AddGains(&report);
  EXPECT_EQ(report.lines[0].measured, 0);
  EXPECT_DOUBLE_EQ(report.lines[1].predicted, 800.0 / 600);
  ASSERT_NE(report.Last(), nullptr);
  report.lines[1].verdict.reset();
  EXPECT_EQ(report.Last(), nullptr);
  EXPECT_THAT(RenderModelReport(report, true), HasSubstr("not judged"));
  EXPECT_THAT(RenderModelSvg(report), HasSubstr("</svg>"));
}

TEST(ModelReport, NamesTheWorstLayer) {
  const ModelReport report = Report();
  ASSERT_NE(WorstError(report), nullptr);
  EXPECT_EQ(NameOfSum(WorstError(report)->name), "layer 1");
  EXPECT_EQ(NameOfSum("out"), "logits");
  EXPECT_EQ(WorstError({}), nullptr);
}

TEST(ModelReport, IsShownAsTextPictureAndDocument) {
  const ModelReport report = Report();
  const std::string text = RenderModelReport(report, true);
  EXPECT_THAT(text, HasSubstr("2000000 tokens/s; swapped 1.60x as fast (faster)"));
  EXPECT_THAT(text, HasSubstr("2.00 times  <- the worst"));
  const std::string svg = RenderModelSvg(report);
  EXPECT_THAT(svg, HasSubstr("A &lt;model&gt;"));
  EXPECT_THAT(svg, HasSubstr("40% of the time; whole 1.25x predicted, 1.25x measured"));
  EXPECT_THAT(svg, HasSubstr("swapped 3200000 tokens/s"));
  const auto json = nlohmann::json::parse(ReportToJson(report));
  EXPECT_EQ(json["schema"], "assay.model/1");
  EXPECT_EQ(json["swaps"][1]["predicted"], 800.0 / 600);
  EXPECT_EQ(json["baselines"]["eager"]["tokens_per_s"], 2e6);
  EXPECT_EQ(json["worst"], "layer 1");
  EXPECT_TRUE(json["plain_speedup"].is_null());
}

TEST(MedianDifference, IsTakenRoundByRound) {
  EXPECT_EQ(MedianDifference({110, 900, 115}, {100, 880, 100}), 15);
  EXPECT_EQ(MedianDifference({}, {}), 0);
}

TEST(RelativeError, IsThatOfTheNorm) {
  const float y[] = {3, 4.5f};
  const double truth[] = {3, 4};
  EXPECT_DOUBLE_EQ(RelativeError(DType::kFloat32, reinterpret_cast<const std::byte*>(y), truth, 2),
                   0.1);
  const uint16_t halves[] = {0x4040, 0x4080};  // bfloat16: 3 and 4
  EXPECT_EQ(RelativeError(DType::kBFloat16, reinterpret_cast<const std::byte*>(halves), truth, 2),
            0);
  const double nan[] = {NAN, 4};
  EXPECT_EQ(RelativeError(DType::kFloat64, reinterpret_cast<const std::byte*>(nan), truth, 2),
            std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace assay
