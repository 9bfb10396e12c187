#include "rules/moved_elements.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "rules/gate1_testing.h"

namespace assay {
namespace {

constexpr int64_t kRows = 100, kColumns = 20;

size_t At(int64_t row, int64_t column) { return static_cast<size_t>(row * kColumns + column); }

// Each element's truth is a small whole number, and the reference has it.
TestOutput Right(std::vector<int64_t> shape = {kRows, kColumns}) {
  TestOutput output;
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  output.shape = std::move(shape);
  for (int64_t i = 0; i < count; ++i) output.reference.push_back(static_cast<float>(1 + i % 7));
  output.truth.assign(output.reference.begin(), output.reference.end());
  output.candidate = output.reference;
  return output;
}

TestOutput OffInRow(int64_t row) {
  TestOutput output = Right();
  for (int64_t i = 0; i < kColumns; ++i) output.candidate[At(row, i)] += 0.5F;
  return output;
}

// A truth that moved in one row, by a distance from element to element.
std::vector<double> NudgedInRow(const TestOutput& output, int64_t row, double distance) {
  std::vector<double> nudged = output.truth;
  for (int64_t i = 0; i < kColumns; ++i) nudged[At(row, i)] += distance;
  return nudged;
}

// What is concluded after these nudges.
std::optional<OutputComparison> Beside(const TestOutput& output,
                                       const std::vector<std::vector<double>>& nudges,
                                       int64_t* left_out) {
  MovedElements moved(output.View(), {});
  for (const std::vector<double>& nudged : nudges) moved.See(output.truth.data(), nudged.data());
  return CompareBesideMoved(output.View(), {}, moved.elements(), left_out);
}

bool Passes(const TestOutput& output, const std::vector<std::vector<double>>& nudges) {
  int64_t left_out = 0;
  const auto rest = Beside(output, nudges, &left_out);
  return rest && rest->passed;
}

TEST(MovedElements, TheyAreLeftOutWhereTheTruthMovesAsFar) {
  const TestOutput output = OffInRow(41);
  EXPECT_FALSE(CompareWithOracle(output.View(), {}, nullptr).passed);
  EXPECT_TRUE(MayBeRounding(output.View(), {}));
  int64_t left_out = 0;
  const auto rest = Beside(output, {output.truth, NudgedInRow(output, 41, -0.5)}, &left_out);
  ASSERT_TRUE(rest.has_value());
  EXPECT_TRUE(rest->passed);
  EXPECT_EQ(rest->error_ratio, 0);
  EXPECT_EQ(left_out, kColumns);
}

TEST(MovedElements, WhatMovesLessOrElsewhereExplainsNothing) {
  const TestOutput output = OffInRow(41);
  EXPECT_FALSE(Passes(output, {NudgedInRow(output, 41, 0.5 / kMovedFactor * 0.9)}));
  EXPECT_TRUE(Passes(output, {NudgedInRow(output, 41, 0.5 / kMovedFactor * 1.1)}));
  EXPECT_FALSE(Passes(output, {NudgedInRow(output, 42, 100)}));
  for (const double special :
       {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
    EXPECT_FALSE(Passes(output, {NudgedInRow(output, 41, special)}));
}

// Once the largest move of a row stood for all of its elements: a row of a million of which one
// moved passed whatever it held elsewhere.
TEST(MovedElements, EachElementWantsItsOwnExplanation) {
  const TestOutput output = OffInRow(41);
  std::vector<double> nudged = NudgedInRow(output, 41, 1);
  nudged[At(41, 7)] = output.truth[At(41, 7)];
  EXPECT_FALSE(Passes(output, {nudged}));
  // Nudges show one after the other.
  std::vector<double> other = output.truth;
  other[At(41, 7)] += 1;
  EXPECT_TRUE(Passes(output, {nudged, other}));
  EXPECT_TRUE(Passes(output, {other, nudged}));
}

TEST(MovedElements, TheLargestMoveOfAnElementCounts) {
  const TestOutput output = Right();
  MovedElements moved(output.View(), {});
  for (const double distance : {0.25, -0.5, 0.125})
    EXPECT_TRUE(moved.See(output.truth.data(), NudgedInRow(output, 3, distance).data()));
  ASSERT_EQ(moved.elements().size(), static_cast<size_t>(kColumns));
  for (size_t i = 0; i < moved.elements().size(); ++i) {
    EXPECT_EQ(moved.elements()[i].index, 3 * kColumns + static_cast<int64_t>(i));
    EXPECT_EQ(moved.elements()[i].moved, 0.5);
  }
}

// Where everything moves, the draw is ill-conditioned: a mean in bfloat16 under a variance of 1000
// +- 0.1 would be explained.
TEST(MovedElements, WhereMuchMovesNothingIsLeftOut) {
  const TestOutput output = OffInRow(41);
  for (const int64_t rows : {kRows / 8, kRows / 8 + 1}) {
    std::vector<double> nudged = output.truth;
    for (int64_t row = 41; row < 41 + rows; ++row)
      for (int64_t i = 0; i < kColumns; ++i) nudged[At(row, i)] += 1;
    MovedElements moved(output.View(), {});
    EXPECT_EQ(moved.See(output.truth.data(), nudged.data()), rows == kRows / 8);
    EXPECT_EQ(moved.elements().empty(), rows != kRows / 8);
  }
  // Also where it adds up over nudges.
  MovedElements moved(output.View(), {});
  bool little = true;
  for (int64_t row = 0; row < kRows / 8 + 1; ++row)
    little = moved.See(output.truth.data(), NudgedInRow(output, row, 1).data());
  EXPECT_FALSE(little);
}

TEST(MovedElements, OfAFewElementsNoneIsLeftOut) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{}, {1}, {7}, {4, 20}}) {
    TestOutput output = Right(shape);
    const size_t row = shape.size() == 2 ? 20 : 1;
    std::vector<double> nudged = output.truth;
    for (size_t i = 0; i < row; ++i) {
      output.candidate[i] += 0.5F;
      nudged[i] += 0.5;
    }
    EXPECT_FALSE(Passes(output, {nudged}));
  }
}

TEST(MovedElements, ManyChoicesAndNoneAreNotAskedAbout) {
  EXPECT_FALSE(MayBeRounding(Right().View(), {}));
  TestOutput rows = Right();
  for (int64_t row = 0; row <= static_cast<int64_t>(kChoicesMax); ++row) {
    EXPECT_EQ(MayBeRounding(rows.View(), {}), row > 0);
    for (int64_t i = 0; i < kColumns; ++i) rows.candidate[At(row, i)] += 1;
  }
  EXPECT_FALSE(MayBeRounding(rows.View(), {}));
  // Where the last dimension is short, and of a vector, each element is a choice.
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{2000}, {1000, 2}}) {
    TestOutput output = Right(shape);
    for (size_t i = 0; i <= kChoicesMax; ++i) {
      EXPECT_EQ(MayBeRounding(output.View(), {}), i > 0);
      output.candidate[i] += 1;
    }
    EXPECT_FALSE(MayBeRounding(output.View(), {}));
  }
}

TEST(MovedElements, ANumberThatIsNoneIsNoRounding) {
  for (const float special :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    TestOutput output = OffInRow(41);
    output.candidate[At(41, 7)] = special;
    EXPECT_FALSE(MayBeRounding(output.View(), {}));
    // Known by another candidate that had asked.
    EXPECT_FALSE(Passes(output, {NudgedInRow(output, 41, 1e9)}));
  }
}

TEST(MovedElements, OtherRulesKnowNoRounding) {
  const TestOutput output = OffInRow(41);
  CompareRule rule;
  rule.allclose = AllClose{1e-4, 1e-4};
  EXPECT_FALSE(MayBeRounding(output.View(), rule));
  rule = {};
  rule.required = PrecisionClass::kExact;
  EXPECT_FALSE(MayBeRounding(output.View(), rule));
  OutputView native = output.View();
  native.oracle = nullptr;
  EXPECT_FALSE(MayBeRounding(native, {}));
}

TEST(MovedElements, TheRestMustStillBeRightAsAWhole) {
  TestOutput output = OffInRow(41);
  const double limit = ElementLimitWithOracle(output.View(), {});
  // Just below each element's bound, and together beyond the norm's.
  for (int64_t row = 0; row < kRows; ++row)
    for (int64_t i = 0; i < kColumns && row != 41; ++i) {
      double scale = 0;
      for (int64_t k = 0; k < kColumns; ++k) scale += std::pow(output.truth[At(row, k)], 2);
      scale = std::sqrt(scale / kColumns);
      output.candidate[At(row, i)] +=
          static_cast<float>(0.9 * limit * (scale + output.truth[At(row, i)]));
    }
  int64_t left_out = 0;
  const auto rest = Beside(output, {NudgedInRow(output, 41, 0.5)}, &left_out);
  ASSERT_TRUE(rest.has_value());
  EXPECT_FALSE(rest->passed);
  EXPECT_GT(rest->error_ratio, 1);
  EXPECT_LT(rest->error_ratio, 2);
}

// A softmax over two scores that are sums of the same numbers in another order, steep enough to be
// a choice: float32 takes one where float64 takes both alike. Nudges as large as the judge's move
// the truth, those of a sixteenth of the rounding unit do not.
TEST(MovedElements, NudgesOfTheJudgesSizeMoveAChoiceThatRoundingMakes) {
  const std::vector<float> numbers = NormalDraw(64, 3);
  const double steepness = 0x1p20;
  const auto first_weight = [&](const std::vector<double>& one, const std::vector<double>& two) {
    double difference = 0;
    for (size_t i = 0; i < one.size(); ++i) difference += one[i] - two[i];
    return 1 / (1 + std::exp(-steepness * difference));
  };
  const std::vector<double> forward(numbers.begin(), numbers.end());
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

TEST(MovedElements, NudgesFollowTheClassThatIsAskedFor) {
  EXPECT_EQ(NudgeBits(PrecisionClass::kFloat64), 49);
  EXPECT_EQ(NudgeBits(PrecisionClass::kFloat32), 20);
  EXPECT_EQ(NudgeBits(PrecisionClass::kTf32), 10);
  EXPECT_EQ(NudgeBits(PrecisionClass::kBFloat16), 7);
}

}  // namespace
}  // namespace assay
