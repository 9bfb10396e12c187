#include "search/reward.h"

#include <gmock/gmock.h>

#include "model/sample_verdicts.h"

namespace assay {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;
using testing::Eq;
using testing::Optional;

Verdict Timed(Outcome outcome, double speedup, double certified) {
  Verdict verdict = SampleVerdict(outcome);
  BaselineResult& result = verdict.speed->baselines.at(verdict.speed->headline);
  result.speedup = speedup;
  result.certified_speedup = certified;
  return verdict;
}

TEST(Reward, FastPaysForCertifiedSpeedAlone) {
  const RewardRules rules;
  EXPECT_THAT(RewardOf(Timed(Outcome::kFaster, 1.8, 1.5), rules), Optional(1.0));
  EXPECT_THAT(RewardOf(Timed(Outcome::kSlower, 0.8, 0.6), rules), Optional(0.0));
  EXPECT_THAT(RewardOf(SampleVerdict(Outcome::kWrong), rules), Optional(0.0));
  EXPECT_THAT(RewardOf(SampleVerdict(Outcome::kBuildFailed), rules), Optional(0.0));
  RewardRules twice;
  twice.p = 1.6;
  EXPECT_THAT(RewardOf(Timed(Outcome::kFaster, 1.8, 1.5), twice), Optional(0.0));
  twice.p = 0;
  EXPECT_THAT(RewardOf(Timed(Outcome::kSlower, 0.8, 0.6), twice), Optional(1.0));
}

TEST(Reward, KevinAddsTheRatioToAShareForCorrectness) {
  RewardRules rules;
  rules.formula = RewardFormula::kKevin;
  EXPECT_THAT(RewardOf(Timed(Outcome::kFaster, 1.8, 1.5), rules), Optional(DoubleEq(2.1)));
  EXPECT_THAT(RewardOf(Timed(Outcome::kSlower, 0.5, 0.4), rules), Optional(DoubleEq(0.8)));
  EXPECT_THAT(RewardOf(SampleVerdict(Outcome::kCrashed), rules), Optional(0.0));
}

TEST(Reward, TiesAndFoulsHaveTheirOwn) {
  RewardRules rules;
  rules.tie = 0.25;
  rules.foul = -2;
  EXPECT_THAT(RewardOf(Timed(Outcome::kTie, 1, 0.9), rules), Optional(0.25));
  EXPECT_THAT(RewardOf(SampleVerdict(Outcome::kFoul), rules), Optional(-2.0));
  rules.formula = RewardFormula::kKevin;
  EXPECT_THAT(RewardOf(SampleVerdict(Outcome::kFoul), rules), Optional(-2.0));
}

TEST(Reward, IsUnknownWhereTheVerdictStaysOpen) {
  EXPECT_THAT(RewardOf(SampleVerdict(Outcome::kUnsettled), {}), Eq(std::nullopt));
}

TEST(Returns, DiscountLaterTurns) {
  EXPECT_THAT(ReturnsOf({0.0, 1.3, 2.0}, 0.5),
              ElementsAre(Optional(DoubleEq(1.15)), Optional(DoubleEq(2.3)), Optional(2.0)));
  EXPECT_THAT(ReturnsOf({1.0, std::nullopt, 2.0}, 0.5),
              ElementsAre(Optional(1.5), Eq(std::nullopt), Optional(2.0)));
  EXPECT_TRUE(ReturnsOf({}, 0.4).empty());
}

TEST(Reward, FormulasHaveNames) {
  EXPECT_EQ(RewardFormulaFromName("kevin").value(), RewardFormula::kKevin);
  EXPECT_FALSE(RewardFormulaFromName("fastest"));
}

}  // namespace
}  // namespace assay
