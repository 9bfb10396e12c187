#include "score/attempt.h"

#include <gtest/gtest.h>

#include <limits>

#include "model/sample_verdicts.h"

namespace assay {
namespace {

TEST(Attempt, EachOutcomeReachesItsStage) {
  const auto stage = [](Outcome outcome) { return AttemptOf(SampleVerdict(outcome)).stage; };
  EXPECT_EQ(stage(Outcome::kBuildFailed), Stage::kJudged);
  EXPECT_EQ(stage(Outcome::kCrashed), Stage::kBuilt);
  EXPECT_EQ(stage(Outcome::kTimedOut), Stage::kBuilt);
  EXPECT_EQ(stage(Outcome::kOutOfMemory), Stage::kBuilt);
  EXPECT_EQ(stage(Outcome::kFoul), Stage::kBuilt);
  EXPECT_EQ(stage(Outcome::kWrong), Stage::kRan);
  EXPECT_EQ(stage(Outcome::kSlower), Stage::kCorrect);
  EXPECT_EQ(stage(Outcome::kTie), Stage::kCorrect);
  EXPECT_EQ(stage(Outcome::kUnsettled), Stage::kCorrect);
  EXPECT_EQ(stage(Outcome::kFaster), Stage::kFaster);
}

TEST(Attempt, AFoulHasNoSpeedHoweverFast) {
  Verdict verdict = SampleVerdict(Outcome::kFaster);
  verdict.outcome = Outcome::kFoul;
  EXPECT_EQ(AttemptOf(verdict).speedup, 0);
  EXPECT_EQ(AttemptOf(verdict).certified_speedup, 0);
}

TEST(Attempt, AnOlderRecordCertifiesItsThreshold) {
  Verdict verdict = SampleVerdict(Outcome::kFaster);
  verdict.speed->baselines.at("eager").certified_speedup = 0;
  verdict.speed->threshold = 2;
  EXPECT_TRUE(Qualifies(AttemptOf(verdict), 2, true));
  EXPECT_FALSE(Qualifies(AttemptOf(verdict), 2.0001, true));
  verdict.outcome = Outcome::kTie;
  EXPECT_FALSE(Qualifies(AttemptOf(verdict), 0.5, true));
}

TEST(Attempt, WhatIsNotFasterIsCertifiedBelowOne) {
  Verdict verdict = SampleVerdict(Outcome::kTie);
  verdict.speed->baselines.at("eager").certified_speedup = 0.97;
  EXPECT_TRUE(Qualifies(AttemptOf(verdict), 0.8, true));
  EXPECT_FALSE(Qualifies(AttemptOf(verdict), 1, true));
  EXPECT_EQ(AttemptOf(verdict).stage, Stage::kCorrect);
}

TEST(Attempt, AnotherBaselineThanTheHeadlineMayCount) {
  const Verdict verdict = SampleVerdict(Outcome::kSlower);
  EXPECT_DOUBLE_EQ(AttemptOf(verdict).speedup, 0.314);
  EXPECT_DOUBLE_EQ(AttemptOf(verdict, "compiled").speedup, 0.21);
  EXPECT_EQ(AttemptOf(verdict, "nobody").speedup, 0);
  EXPECT_TRUE(AttemptOf(verdict, "nobody").correct());
}

TEST(Attempt, RatiosThatAreNoNumbersAreNotFast) {
  Verdict verdict = SampleVerdict(Outcome::kUnsettled);
  for (const double ratio :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), -1.0}) {
    verdict.speed->baselines.at("eager").speedup = ratio;
    verdict.speed->baselines.at("eager").certified_speedup = ratio;
    EXPECT_FALSE(Qualifies(AttemptOf(verdict), 0.001, false));
    EXPECT_FALSE(Qualifies(AttemptOf(verdict), 0.001, true));
    EXPECT_TRUE(Qualifies(AttemptOf(verdict), 0, true));
  }
}

}  // namespace
}  // namespace assay
