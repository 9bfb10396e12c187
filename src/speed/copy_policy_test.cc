#include "speed/copy_policy.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

using wire::Results;

Forms BothLeave() {
  Forms forms;
  forms.candidate_leaves = forms.opponent_leaves = true;
  return forms;
}

TEST(CopyPolicy, BothCopyWhereTheCandidateUsesItsResultsAgain) {
  CopyPolicy copies(BothLeave(), false);
  EXPECT_EQ(copies.ResultsOf(true, false), Results::kLeft);
  copies.CopyFromNowOn(true);
  EXPECT_EQ(copies.ResultsOf(true, false), Results::kIntoSlots);
  EXPECT_EQ(copies.ResultsOf(false, false), Results::kIntoSlots);
  EXPECT_TRUE(copies.candidate_copies());
  EXPECT_FALSE(copies.both_copy());
}

TEST(CopyPolicy, BothCopyWhereTheOpponentUsesItsResultsAgain) {
  CopyPolicy copies(BothLeave(), false);
  copies.CopyFromNowOn(false);
  EXPECT_EQ(copies.ResultsOf(true, false), Results::kIntoSlots);
  EXPECT_EQ(copies.ResultsOf(false, false), Results::kIntoSlots);
  EXPECT_FALSE(copies.candidate_copies());
  EXPECT_TRUE(copies.both_copy());
}

// Beside a candidate that writes into slots itself.
TEST(CopyPolicy, OnADeviceAReferenceKeepsWhatNobodyLooksAt) {
  Forms forms;
  forms.subtract_settle = true;
  EXPECT_EQ(CopyPolicy(forms, true).ResultsOf(false, false), Results::kKept);
  EXPECT_EQ(CopyPolicy(forms, true).ResultsOf(false, true), Results::kIntoSlots);
  EXPECT_EQ(CopyPolicy(forms, false).ResultsOf(false, false), Results::kIntoSlots);
  EXPECT_TRUE(CopyPolicy(forms, false).SubtractsSettle(false));
  EXPECT_FALSE(CopyPolicy(forms, false).SubtractsSettle(true));
}

}  // namespace
}  // namespace assay
