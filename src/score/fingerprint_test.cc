#include "score/fingerprint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "score/score_testing.h"

namespace assay {
namespace {

using ::testing::ElementsAre;

Verdict Wrong(const std::string& hint) {
  Verdict verdict = Judged("gelu", Outcome::kWrong);
  verdict.correctness->hint = hint;
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
  unsettled.speed->baselines.at("eager").why_unsettled = {"budget", 30};
  EXPECT_EQ(KindOf(unsettled), "budget");
}

TEST(Fingerprint, WrongOnesGoByTheirHint) {
  EXPECT_EQ(KindOf(Wrong("right on ordinary values, wrong on huge values: likely overflow")),
            "huge values alone");
  EXPECT_EQ(KindOf(Wrong("right on ordinary values, wrong in a new way")), "unusual values alone");
  EXPECT_EQ(KindOf(Wrong("right at the size that was asked for, but at 3 x 5: all NaN")),
            "another size");
  EXPECT_EQ(KindOf(Wrong("12% of the elements are wrong, by up to 3")), "other values");
  Verdict prepared = Wrong("right with constant weights: it prepares them once");
  prepared.correctness->right_with_weights = "constant";
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
