#include "judge/moved_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "judge/gate1_testing.h"

namespace assay {
namespace {

constexpr int64_t kRows = 100, kColumns = 20;

size_t At(int64_t row, int64_t column) { return static_cast<size_t>(row * kColumns + column); }

// A candidate that is right but for one row, where it is off by 0.5.
TestOutput OffInRow(int64_t row) {
  TestOutput output;
  output.shape = {kRows, kColumns};
  output.reference = NormalDraw(static_cast<size_t>(kRows * kColumns), 7);
  output.truth.assign(output.reference.begin(), output.reference.end());
  output.candidate = output.reference;
  for (int64_t i = 0; i < kColumns; ++i) output.candidate[At(row, i)] += 0.5F;
  return output;
}

std::vector<double> NudgedBy(const TestOutput& output, int64_t row, double distance) {
  std::vector<double> nudged = output.truth;
  nudged[At(row, 3)] += distance;
  return nudged;
}

// What is concluded once nudges were seen to move `row` by `distance`.
std::optional<OutputComparison> Beside(const TestOutput& output, int64_t row, double distance,
                                       int64_t* left_out) {
  std::vector<MovedRow> rows = DoubtfulRows(output.View(), {});
  SeeMoved(output.truth.data(), NudgedBy(output, row, distance).data(), rows);
  return CompareBesideMoved(output.View(), {}, rows, left_out);
}

TEST(MovedRows, ARowIsLeftOutWhereTheTruthMovesAsFar) {
  const TestOutput output = OffInRow(41);
  EXPECT_FALSE(CompareWithOracle(output.View(), {}, nullptr).passed);
  int64_t left_out = 0;
  const auto rest = Beside(output, 41, 0.5, &left_out);
  ASSERT_TRUE(rest.has_value());
  EXPECT_TRUE(rest->passed);
  EXPECT_LE(rest->error_ratio, 1);
  EXPECT_EQ(left_out, 1);
}

TEST(MovedRows, WhatMovesLessOrElsewhereExplainsNothing) {
  const TestOutput output = OffInRow(41);
  int64_t left_out = 0;
  EXPECT_FALSE(Beside(output, 41, 0.5 / kMovedFactor * 0.9, &left_out));
  EXPECT_TRUE(Beside(output, 41, 0.5 / kMovedFactor * 1.1, &left_out));
  EXPECT_FALSE(Beside(output, 42, 100, &left_out));
  EXPECT_FALSE(Beside(output, 41, std::numeric_limits<double>::infinity(), &left_out));
  EXPECT_FALSE(Beside(output, 41, std::numeric_limits<double>::quiet_NaN(), &left_out));
}

TEST(MovedRows, EachWrongRowWantsItsOwnExplanation) {
  TestOutput output = OffInRow(41);
  output.candidate[At(90, 0)] += 0.5F;
  int64_t left_out = 0;
  EXPECT_FALSE(Beside(output, 41, 1, &left_out));
  std::vector<MovedRow> rows = DoubtfulRows(output.View(), {});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].begin, 90 * kColumns);
  EXPECT_EQ(rows[1].count, kColumns);
  for (const int64_t row : {41, 90})
    SeeMoved(output.truth.data(), NudgedBy(output, row, 1).data(), rows);
  ASSERT_TRUE(CompareBesideMoved(output.View(), {}, rows, &left_out));
  EXPECT_EQ(left_out, 2);
}

TEST(MovedRows, ANumberThatIsNoneIsNoRounding) {
  for (const float special :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    TestOutput output = OffInRow(41);
    output.candidate[At(41, 7)] = special;
    EXPECT_TRUE(DoubtfulRows(output.View(), {}).empty());
    // Rows that another candidate had asked for.
    const MovedRow known[] = {{41 * kColumns, kColumns, 1e9}};
    int64_t left_out = 0;
    EXPECT_FALSE(CompareBesideMoved(output.View(), {}, known, &left_out));
  }
}

TEST(MovedRows, ManyWrongRowsAndRightOnesAreNotAskedAbout) {
  TestOutput output = OffInRow(41);
  for (size_t row = 0; row < kDoubtfulRowsMax; ++row)
    output.candidate[At(static_cast<int64_t>(row), 0)] += 1;
  EXPECT_TRUE(DoubtfulRows(output.View(), {}).empty());
  output.candidate = output.reference;
  EXPECT_TRUE(DoubtfulRows(output.View(), {}).empty());
}

TEST(MovedRows, OtherRulesKnowNoRounding) {
  const TestOutput output = OffInRow(41);
  CompareRule rule;
  rule.allclose = AllClose{1e-4, 1e-4};
  EXPECT_TRUE(DoubtfulRows(output.View(), rule).empty());
  rule = {};
  rule.required = PrecisionClass::kExact;
  EXPECT_TRUE(DoubtfulRows(output.View(), rule).empty());
  OutputView native = output.View();
  native.oracle = nullptr;
  EXPECT_TRUE(DoubtfulRows(native, {}).empty());
}

TEST(MovedRows, TheRestMustStillBeRightAsAWhole) {
  TestOutput output = OffInRow(41);
  // Below each element's bound, and together beyond the norm's.
  for (int64_t row = 0; row < 41; ++row)
    for (int64_t i = 0; i < kColumns; ++i) output.candidate[At(row, i)] *= 1 + 0x1p-13F;
  std::vector<MovedRow> rows = {{41 * kColumns, kColumns, 1}};
  int64_t left_out = 0;
  const auto rest = CompareBesideMoved(output.View(), {}, rows, &left_out);
  EXPECT_FALSE(rest && rest->passed);
}

// A softmax over two scores that are sums of the same numbers in another order, steep enough to be
// a choice: float32 takes one where float64 takes both alike. Nudges as large as the judge's move
// the truth, those of a tenth of the rounding unit do not.
TEST(MovedRows, NudgesOfTheJudgesSizeMoveAChoiceThatRoundingMakes) {
  const std::vector<float> numbers = NormalDraw(64, 3);
  const double steepness = 0x1p20;
  const auto first_weight = [&](const std::vector<double>& one, const std::vector<double>& two) {
    double difference = 0;
    for (size_t i = 0; i < one.size(); ++i) difference += one[i] - two[i];
    return 1 / (1 + std::exp(-steepness * difference));
  };
  std::vector<double> forward(numbers.begin(), numbers.end());
  const std::vector<double> backward(numbers.rbegin(), numbers.rend());
  const double truth = first_weight(forward, backward);
  EXPECT_NEAR(truth, 0.5, 1e-6);
  const auto moves_by = [&](double size) {
    double moved = 0;
    for (uint32_t nudge = 1; nudge <= kNudges; ++nudge) {
      const std::vector<float> share = UniformDraw(64, nudge);
      std::vector<double> nudged = forward;
      for (size_t i = 0; i < nudged.size(); ++i) nudged[i] *= 1 + size * (2.0 * share[i] - 1);
      moved = std::max(moved, std::fabs(first_weight(nudged, backward) - truth));
    }
    return moved;
  };
  EXPECT_GT(moves_by(std::ldexp(1.0, -NudgeBits(PrecisionClass::kFloat32))), 0.4);
  EXPECT_LT(moves_by(0x1p-28), 0.1);
}

TEST(MovedRows, NudgesFollowTheClassThatIsAskedFor) {
  EXPECT_EQ(NudgeBits(PrecisionClass::kFloat64), 47);
  EXPECT_EQ(NudgeBits(PrecisionClass::kFloat32), 18);
  EXPECT_EQ(NudgeBits(PrecisionClass::kTf32), 10);
  EXPECT_EQ(NudgeBits(PrecisionClass::kBFloat16), 7);
}

}  // namespace
}  // namespace assay
