#include "report/decision_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "rules/gate2.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// As gate 2 concludes from pairs of these speedups.
BaselineResult Concluded(const std::vector<double>& speedups, double threshold) {
  SpeedRule rule;
  rule.threshold = threshold;
  std::vector<double> values;
  for (const double speedup : speedups) values.push_back(std::log(speedup));
  const SpeedEstimate estimate = Estimate(values, rule);
  BaselineResult result;
  result.speedup = estimate.speedup;
  result.ci_low = estimate.low;
  result.ci_high = estimate.high;
  result.confidence = estimate.confidence;
  result.smallest_visible = estimate.smallest_visible;
  result.pairs = static_cast<int>(speedups.size());
  result.decision = DecisionName(Decide(values, rule, true, true));
  return result;
}

std::string Decided(const std::vector<double>& speedups, double threshold = 1) {
  return DecisionText(Concluded(speedups, threshold), threshold);
}

std::vector<double> Times(int count, double speedup) {
  return std::vector<double>(static_cast<size_t>(count), speedup);
}

TEST(DecisionText, AClearCaseRestsOnEveryPair) {
  EXPECT_EQ(Decided({2.5, 2.6, 2.41}),
            "3 of 3 pairs, each at least 2.41x as fast; a false win is rarer than 1 in 1,000");
  EXPECT_EQ(Decided({0.5, 0.4, 0.6}),
            "3 of 3 pairs, each at most 0.600x as fast; a false loss is rarer than 1 in 1,000");
}

TEST(DecisionText, ALookHasTheExactBoundOfItsTest) {
  ASSERT_GT(1 / FalseWinBound(), 260);
  ASSERT_LT(1 / FalseWinBound(), 280);
  EXPECT_THAT(Decided(Times(9, 1.1)),
              testing::MatchesRegex("9 of 9 pairs, each at least 1\\.10x as fast; "
                                    "a false win is rarer than 1 in 2[67]0"));
  EXPECT_THAT(Decided(Times(9, 0.9)), HasSubstr("each at most 0.900x as fast; a false loss is"));
}

TEST(DecisionText, LaterLooksNeedMostPairsAlone) {
  std::vector<double> speedups = Times(14, 1.1);
  speedups[3] = 0.99;
  EXPECT_THAT(Decided(speedups), HasSubstr("at least 13 of 14 pairs are faster; a false win is"));
  for (double& speedup : speedups) speedup *= 2;
  EXPECT_THAT(Decided(speedups, 2), HasSubstr("13 of 14 pairs are more than 2x as fast"));
  EXPECT_THAT(Decided(speedups, 2.5),
              HasSubstr("13 of 14 pairs are less than 2.5x as fast; a false loss"));
}

TEST(DecisionText, ATieSaysHowFarFromItItMayBe) {
  EXPECT_EQ(Decided({1, 1.001, 1.002, 0.998, 0.999, 1, 1, 1, 1.003}),
            "9 pairs, within 0.3% of equal speed; a false tie is rarer than 1 in 250; a gain under "
            "0.8% could not have been seen");
  EXPECT_THAT(Decided({2, 2, 2, 2, 2, 2, 2, 2, 2.004}, 2),
              HasSubstr("9 pairs, within 0.2% of 2x the speed; a false tie"));
}

// Each look at an interval is a chance to be wrong.
TEST(DecisionText, ALaterTieRisksMore) {
  BaselineResult late = Concluded(Times(9, 1), 1);
  ASSERT_EQ(late.decision, "tie");
  for (const auto& [pairs, odds] :
       {std::pair{9, "1 in 250;"}, {14, "1 in 170;"}, {32, "1 in 51;"}}) {
    late.pairs = pairs;
    EXPECT_THAT(DecisionText(late, 1), HasSubstr(odds)) << pairs;
  }
}

// An interval from 7.5 to 9.2 was said to leave open which is faster.
TEST(DecisionText, OneSidedPairsWithoutADecisionSaySo) {
  BaselineResult result;
  result.decision = "unsettled";
  result.pairs = 3;
  result.ci_low = 7.5;
  result.ci_high = 9.2;
  EXPECT_THAT(DecisionText(result, 1), HasSubstr("3 pairs point one way"));
  // It was said beside 2.15x that a gain under 23% could not have been seen.
  result.smallest_visible = 1.23;
  EXPECT_THAT(DecisionText(result, 1), Not(HasSubstr("could not have been seen")));
  for (const auto& [cause, words] :
       {std::pair{UnsettledCause::kNoise, "too few of them by more than the noise"},
        {UnsettledCause::kDisturbed, "too disturbed by other processes"},
        {UnsettledCause::kBudget, "too few for a decision when the budget ended"},
        {UnsettledCause::kBlocks, "which the note does not let count"}}) {
    result.why_unsettled = WhyUnsettled{.cause = cause};
    EXPECT_THAT(DecisionText(result, 1), HasSubstr(words));
  }
  result.ci_low = 0.9;
  EXPECT_THAT(DecisionText(result, 1), HasSubstr("open which is faster"));
}

TEST(DecisionText, NoDecisionClaimsNothing) {
  const std::string text = Decided({0.8, 1, 1.3});
  EXPECT_THAT(text, HasSubstr("after 3 pairs it is open which is faster"));
  EXPECT_THAT(text, HasSubstr("a gain under 28% could not have been seen"));
  BaselineResult none;
  none.decision = "unsettled";
  EXPECT_THAT(DecisionText(none, 1), Not(HasSubstr("gain")));
}

TEST(DecisionText, FewPairsClaimNoInterval) {
  EXPECT_THAT(Decided({0.8, 1.3}), Not(HasSubstr("gain")));
  BaselineResult few = Concluded({0.8, 1.3}, 1);
  EXPECT_EQ(IntervalText(few), "and 2 pairs are too few for an interval");
  few = Concluded({1.003}, 1);
  EXPECT_EQ(IntervalText(few), "and 1 pair is too few for an interval");
}

TEST(IntervalText, IsRoundedOutwards) {
  BaselineResult result;
  result.ci_low = 2.4371;
  result.ci_high = 2.5311;
  EXPECT_EQ(IntervalText(result), "between 2.43x and 2.54x");
  result.ci_low = 2.43;
  result.ci_high = 12.51;
  EXPECT_EQ(IntervalText(result), "between 2.43x and 12.6x");
  result.ci_low = 0.04567;
  result.ci_high = 0.98765;
  EXPECT_EQ(IntervalText(result), "between 0.045x and 0.988x");
  result.ci_low = 0;
  result.ci_high = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(IntervalText(result), "between 0x and ?");
}

}  // namespace
}  // namespace assay
