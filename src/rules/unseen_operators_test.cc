#include "rules/unseen_operators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

OperatorCoverage WithUnseen(double time_share) {
  return {14, 12, 1, {{"add", 21, "add in line 21 drops its second term", time_share, ""}}};
}

UnseenOperator OnHugeValues(int line, double time_share) {
  return {"amax", line, "amax is left out", time_share, "huge-scale"};
}

TEST(CoverageTextTest, NamesWhatIsNotSeen) {
  EXPECT_EQ(CoverageText(OperatorCoverage{14, 14, 0, {}}), "the values see 14 of 14 operators");
  EXPECT_EQ(CoverageText(WithUnseen(0.1)),
            "the values see 12 of 14 operators; not seen: add in line 21; not tried: 1");
}

TEST(CoverageTextTest, NamesAnOperatorOfManyCallsOnce) {
  OperatorCoverage coverage = WithUnseen(0.1);
  coverage.unseen.push_back(coverage.unseen.front());
  coverage.unseen.push_back({"mul", 0, "mul drops its second factor", 0, ""});
  EXPECT_THAT(CoverageText(coverage), HasSubstr("not seen: add in line 21, mul; "));
}

TEST(UnseenExplainsTest, AGainIsExplainedByTheTimeOfWhatIsNotSeen) {
  // Without half of its time a kernel is twice as fast.
  EXPECT_THAT(UnseenExplains(WithUnseen(0.5), 1.9),
              HasSubstr("add in line 21, 50% of the reference's time"));
  EXPECT_THAT(UnseenExplains(WithUnseen(0.5), 2), HasSubstr("could be as fast"));
  EXPECT_THAT(UnseenExplains(WithUnseen(0.5), 2.1), IsEmpty());
}

// A kernel looked at a few values, took huge ones for what they were, and left a search for the
// largest out of all others: 20x.
TEST(UnseenExplainsTest, WhatOnlyUnusualValuesShowExplainsAGainToo) {
  const OperatorCoverage coverage{3, 2, 0, {OnHugeValues(4, 0.5), OnHugeValues(5, 0.25)}};
  EXPECT_EQ(
      CoverageText(coverage),
      "the values see 2 of 3 operators; on unusual values alone: amax in line 4, amax in line "
      "5");
  const std::string why = UnseenExplains(coverage, 1.9);
  EXPECT_THAT(why, HasSubstr("show amax in line 4 and amax in line 5 by draws alone"));
  EXPECT_THAT(why, HasSubstr("50% of the reference's time"));
  EXPECT_THAT(UnseenExplains(coverage, 2.1), IsEmpty());
}

TEST(UnseenExplainsTest, BothKindsAreNamed) {
  OperatorCoverage coverage = WithUnseen(0.25);
  coverage.unseen.push_back(OnHugeValues(4, 0.25));
  EXPECT_THAT(UnseenExplains(coverage, 1.9),
              HasSubstr("do not show add in line 21, and show amax in line 4 by draws alone that a "
                        "glance at a few values tells, 50%"));
}

TEST(UnseenExplainsTest, OperatorsThatAreSeenExplainNothing) {
  EXPECT_THAT(UnseenExplains(OperatorCoverage{14, 14, 0, {}}, 1.0), IsEmpty());
}

}  // namespace
}  // namespace assay
