#include "score/fingerprint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "score/attempt.h"
#include "score/score_testing.h"

namespace assay {
namespace {

using ::testing::ElementsAre;

Verdict Wrong(Mistake mistake) {
  Verdict verdict = Judged("gelu", Outcome::kWrong);
  verdict.correctness->mistake = mistake;
  return verdict;
}

TEST(Fingerprint, EachOutcomeHasItsKind) {
  EXPECT_EQ(KindOf(Judged("gelu", Outcome::kFaster, 2)), "");
  EXPECT_EQ(KindOf(Judged("gelu", Outcome::kBuildFailed)), "");
  Verdict foul = Judged("gelu", Outcome::kFoul);
  foul.foul = {"late-write", "an output changed"};
  EXPECT_EQ(KindOf(foul), "late-write");
  Verdict unsettled = Judged("gelu", Outcome::kUnsettled, 1.1);
  EXPECT_EQ(KindOf(unsettled), "");
  unsettled.speed->baselines.at("eager").why_unsettled = {UnsettledCause::kBudget, 30};
  EXPECT_EQ(KindOf(unsettled), "budget");
}

// The words of a hint are for people.
TEST(Fingerprint, WrongOnesGoByTheirMistake) {
  EXPECT_EQ(KindOf(Wrong(Mistake::kHugeValues)), "huge values alone");
  EXPECT_EQ(KindOf(Wrong(Mistake::kOtherSize)), "another size");
  EXPECT_EQ(KindOf(Wrong(Mistake::kNone)), "other values");
  Verdict reworded = Wrong(Mistake::kPrecision);
  reworded.correctness->hint = "right on ordinary values; every second row is transposed";
  EXPECT_EQ(KindOf(reworded), "precision");
  EXPECT_FALSE(RightOnOrdinaryValues(reworded));
  Verdict prepared = Wrong(Mistake::kOther);
  prepared.correctness->right_with_weights = WeightsKind::kConstant;
  EXPECT_EQ(KindOf(prepared), "prepared weights");
}

TEST(Fingerprint, RowsStandByHowFarTheyCame) {
  std::vector<FingerprintRow> rows{
      {Outcome::kFaster, "", 1, {}},         {Outcome::kWrong, "precision", 1, {}},
      {Outcome::kWrong, "zeros", 4, {}},     {Outcome::kBuildFailed, "", 1, {}},
      {Outcome::kFoul, "late-write", 1, {}}, {Outcome::kWrong, "another size", 1, {}}};
  SortRows(&rows);
  std::vector<std::string> order;
  for (const FingerprintRow& row : rows)
    order.push_back(std::string(OutcomeName(row.outcome)) + " " + row.kind);
  EXPECT_THAT(order, ElementsAre("build_failed ", "foul late-write", "wrong zeros",
                                 "wrong another size", "wrong precision", "faster "));
}

}  // namespace
}  // namespace assay
