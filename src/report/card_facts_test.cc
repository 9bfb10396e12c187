// Single facts on cards; card_test.cc has whole cards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "model/sample_verdicts.h"
#include "report/card.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr CardStyle kAscii{.colour = false, .unicode = false, .width = 80};

TEST(Card, AloneItLacksTheNextCommand) {
  for (const Verdict& verdict : SampleVerdicts()) {
    const std::string whole = RenderCard(verdict, {}), alone = RenderCardAlone(verdict, {});
    EXPECT_TRUE(whole.starts_with(alone));
    EXPECT_EQ(alone.find("next: "), std::string::npos);
  }
}

TEST(Card, SaysAtWhichSizesItWasRight) {
  Verdict verdict = SampleVerdict(Outcome::kCorrect);
  for (const char* rows : {"3", "65"}) {
    DrawRecord draw = verdict.correctness->draws.front();
    draw.set = verdict.problem.set;
    draw.set["ROWS"] = rows;
    verdict.correctness->draws.push_back(draw);
  }
  const std::string card = RenderCard(verdict, kAscii);
  EXPECT_THAT(card, HasSubstr("right at this one and at ROWS=3; ROWS=65"));
  EXPECT_THAT(card, Not(HasSubstr("at this size alone")));
}

// Eager 36.8 us, candidate 36.6 us, and 0.971x on one card.
TEST(Card, SaysWhichFigureIsWhichWhereTimesAndSpeedupDisagree) {
  Verdict verdict = SampleVerdict(Outcome::kFaster);
  EXPECT_THAT(RenderCard(verdict, kAscii), Not(HasSubstr("medians of all blocks")));
  BaselineResult& result = verdict.speed->baselines["eager"];
  result.time_ns = 36'800;
  result.candidate_time_ns = 36'600;
  result.speedup = 0.971;
  EXPECT_THAT(RenderCard(verdict, kAscii), HasSubstr("medians of all blocks"));
}

TEST(Card, KeepsTheLinesOfAMessage) {
  Verdict verdict = SampleVerdict(Outcome::kBuildFailed);
  verdict.message = "the candidate declares:\n  KERNEL(a)\nthe problem needs:\n  KERNEL(b)";
  const std::string card = RenderCard(verdict, kAscii);
  EXPECT_THAT(card, HasSubstr("|  the candidate declares:  "));
  EXPECT_THAT(card, HasSubstr("|  KERNEL(a)  "));
  verdict.message.assign(5000, '\n');  // foreign text may hold any number
  EXPECT_LT(RenderCard(verdict, kAscii).size(), 5000U);
}

TEST(Card, ShowsTheFirstWrongElementAsPeopleWriteIt) {
  Verdict verdict = SampleVerdict(Outcome::kWrong);
  Mismatch& first = *verdict.correctness->first_mismatch;
  first.output = "out1";
  first.index = {};
  first.expected = -std::numeric_limits<double>::quiet_NaN();
  first.got = 2;
  EXPECT_THAT(RenderCard(verdict, kAscii), HasSubstr("first wrong  out1: expected nan, got 2 "));
  first.index = {0, 1};
  first.expected = 2;  // an index that stands twice
  EXPECT_THAT(RenderCard(verdict, kAscii), HasSubstr("first wrong  out1[0, 1]: got 2 "));
}

TEST(Card, SaysThatTheProblemsOwnCheckJudged) {
  Verdict verdict = SampleVerdict(Outcome::kFaster);
  EXPECT_EQ(RenderCard(verdict, kAscii).find("own check"), std::string::npos);
  verdict.correctness->tolerance = kByOwnCheck;
  verdict.correctness->precision_class.clear();
  verdict.correctness->required_class.clear();
  const std::string card = RenderCard(verdict, kAscii);
  EXPECT_THAT(card, HasSubstr("judged by the problem's own check"));
  EXPECT_EQ(card.find("of what is allowed"), std::string::npos) << card;
  EXPECT_EQ(card.find("precision"), std::string::npos) << card;
}

TEST(Card, OfAFloat16ProblemSpeaksOfFloat16) {
  Verdict verdict = SampleVerdict(Outcome::kFaster);
  verdict.problem.dtype = "float16";
  verdict.correctness->precision_class = verdict.correctness->required_class = "tf32";
  EXPECT_THAT(RenderCard(verdict, kAscii), HasSubstr("float16, as required"));
}

TEST(Card, SaysWhoseCodeTheTimeGoesBy) {
  Verdict verdict = SampleVerdict(Outcome::kFaster);
  const CardStyle style;
  EXPECT_EQ(RenderCard(verdict, style).find("libraries"), std::string::npos) << "a trifle";
  verdict.libraries =
      LibraryTime{100, 0.93, {{"libopenblas.so.0", 0.9}, {"libtorch_cpu.so", 0.03}}};
  const std::string card = RenderCard(verdict, style);
  EXPECT_NE(card.find("93% of its time is spent in libopenblas.so.0, "), std::string::npos) << card;
}

}  // namespace
}  // namespace assay
