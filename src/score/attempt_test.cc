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

TEST(Attempt, WeightsPreparedOnceAreCorrectInPlainAlone) {
  for (const Outcome outcome : {Outcome::kWrong, Outcome::kWeightsDiffer}) {
    Verdict verdict = SampleVerdict(outcome);
    verdict.correctness.emplace().right_with_weights = WeightsKind::kConstant;
    const Attempt attempt = AttemptOf(verdict);
    EXPECT_TRUE(attempt.prepares_weights);
    EXPECT_EQ(attempt.stage, Stage::kCorrect);
    EXPECT_TRUE(Qualifies(attempt, 0, false));
    EXPECT_FALSE(Qualifies(attempt, 0, true));
    EXPECT_FALSE(Qualifies(attempt, 0.1, false));  // it was never timed
    verdict.outcome = Outcome::kFoul;
    EXPECT_FALSE(AttemptOf(verdict).correct());
  }
  // Had it a speed, plain would count that, too.
  Verdict timed = SampleVerdict(Outcome::kFaster);
  timed.outcome = Outcome::kWrong;
  timed.correctness->right_with_weights = WeightsKind::kConstant;
  EXPECT_TRUE(Qualifies(AttemptOf(timed), 1, false));
  EXPECT_FALSE(Qualifies(AttemptOf(timed), 1, true));
  EXPECT_EQ(AttemptOf(timed).certified_speedup, 0);
}

TEST(Attempt, UnusualValuesAloneAreToldApartAndNotCorrect) {
  Verdict verdict = SampleVerdict(Outcome::kWrong);
  EXPECT_FALSE(AttemptOf(verdict).right_on_ordinary);
  verdict.correctness->mistake = Mistake::kHugeValues;
  EXPECT_TRUE(AttemptOf(verdict).right_on_ordinary);
  EXPECT_FALSE(AttemptOf(verdict).correct());
  EXPECT_EQ(AttemptOf(verdict).message, verdict.correctness->hint);
  // NaN and infinity alone do not make it wrong.
  Verdict differing = SampleVerdict(Outcome::kTie);
  differing.correctness->differs_on_special_values = "wrong on NaN or infinity";
  EXPECT_TRUE(AttemptOf(differing).differs_on_special);
  EXPECT_TRUE(AttemptOf(differing).correct());
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
