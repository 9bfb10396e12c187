#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "rules/gate1.h"
#include "rules/gate1_testing.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr size_t kRows = 20;
constexpr size_t kColumns = 30;

TestOutput Fresh(size_t rows = kRows, size_t columns = kColumns) {
  TestOutput output;
  output.shape = {static_cast<int64_t>(rows), static_cast<int64_t>(columns)};
  output.reference = NormalDraw(rows * columns, 3);
  output.candidate = output.reference;
  output.truth.assign(output.reference.begin(), output.reference.end());
  return output;
}

std::string Hint(const TestOutput& output, const HintContext& context = {}) {
  const OutputComparison comparison = CompareWithOracle(output.View(), {}, nullptr);
  EXPECT_FALSE(comparison.passed);
  return FailureHint(output.View(), comparison, context).text;
}

template <typename Wrong>
TestOutput With(Wrong wrong) {  // adds 1 where wrong(row, column)
  TestOutput output = Fresh();
  for (size_t i = 0; i < kRows; ++i)
    for (size_t j = 0; j < kColumns; ++j)
      if (wrong(i, j))
        output.candidate[i * kColumns + j] +=
            0.5F + 0.01F * static_cast<float>((i * 7 + j * 3) % 11);
  return output;
}

TEST(FailureHint, NamesAnOutputThatWasNeverWritten) {
  TestOutput output = Fresh();
  const std::vector<float> poison(output.candidate.size(), std::numeric_limits<float>::quiet_NaN());
  HintContext context;
  context.poison = poison.data();
  output.candidate = poison;
  EXPECT_THAT(Hint(output, context), StartsWith("never written"));

  output = Fresh();
  for (size_t i = 540; i < 600; ++i) output.candidate[i] = poison[i];
  EXPECT_EQ(Hint(output, context),
            "at least 10.0% of the output was never written; only the last 2 rows of 20 are wrong: "
            "a boundary");
  output = Fresh();
  for (size_t i = 585; i < 600; ++i) output.candidate[i] = poison[i];
  EXPECT_THAT(Hint(output, context), HasSubstr("the last 15 of 600 elements, in memory order"));
}

TEST(FailureHint, NamesNan) {
  TestOutput output = Fresh();
  output.candidate.assign(600, -std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(Hint(output), "all NaN");
  output = Fresh();
  for (size_t i = 0; i < 600; i += 7) output.candidate[i] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(Hint(output), HasSubstr("NaN where they should not be"));
}

TEST(FailureHint, NamesACopiedInput) {
  TestOutput output = Fresh();
  const std::vector<float> x = NormalDraw(600, 9);
  output.candidate = x;
  HintContext context;
  context.inputs.push_back({"w", DType::kFloat32, 30, x.data()});
  context.inputs.push_back({"x", DType::kFloat32, 600, x.data()});
  EXPECT_THAT(Hint(output, context), StartsWith("equals its input x"));
}

TEST(FailureHint, NamesZerosAndConstants) {
  TestOutput output = Fresh();
  output.candidate.assign(600, 0.0F);
  EXPECT_EQ(Hint(output), "all zeros");
  output.candidate.assign(600, 2.5F);
  EXPECT_THAT(Hint(output), HasSubstr("the same value everywhere: 2.5"));
}

TEST(FailureHint, NamesBoundaries) {
  EXPECT_EQ(Hint(With([](size_t, size_t j) { return j >= 27; })),
            "only the last 3 columns of 30 are wrong: a boundary");
  EXPECT_THAT(Hint(With([](size_t, size_t j) { return j == 29; })),
              HasSubstr("only the last column of 30"));
  EXPECT_THAT(Hint(With([](size_t, size_t j) { return j < 4; })),
              HasSubstr("only the first 4 columns of 30"));
  EXPECT_THAT(Hint(With([](size_t i, size_t) { return i >= 18; })),
              HasSubstr("only the last 2 rows of 20"));
  EXPECT_THAT(Hint(With([](size_t i, size_t) { return i < 1; })),
              HasSubstr("only the first row of 20"));
  EXPECT_THAT(Hint(With([](size_t i, size_t) { return i == 7; })), HasSubstr("only row 7 of 20"));
}

TEST(FailureHint, NamesStrides) {
  EXPECT_THAT(Hint(With([](size_t i, size_t) { return i % 2 == 1; })),
              HasSubstr("every second row is wrong, from 1 on"));
  EXPECT_THAT(Hint(With([](size_t, size_t j) { return j % 2 == 0; })),
              HasSubstr("every second column is wrong, from 0 on"));
  EXPECT_THAT(Hint(With([](size_t, size_t j) { return j % 4 == 3; })),
              HasSubstr("every 4th column is wrong, from 3 on"));
}

TEST(FailureHint, NamesFactorsOffsetsAndSigns) {
  TestOutput output = Fresh();
  for (float& value : output.candidate) value *= 2;
  EXPECT_EQ(Hint(output), "off by a factor of 2.000");
  output = Fresh();
  for (float& value : output.candidate) value *= 1.001F;
  EXPECT_EQ(Hint(output), "off by a factor of 1.001");
  output = Fresh();
  for (float& value : output.candidate) value += 0.125F;
  EXPECT_THAT(Hint(output), HasSubstr("off by a constant: +0.1250"));
  output = Fresh();
  for (float& value : output.candidate) value = -value;
  EXPECT_EQ(Hint(output), "the sign is flipped");
  // Of an absolute value only the negative ones are wrong.
  output = Fresh();
  for (size_t i = 0; i < output.candidate.size(); i += 3) output.candidate[i] *= -1;
  EXPECT_THAT(Hint(output), HasSubstr("the wrong elements are right but for their sign"));
}

TEST(FailureHint, CombinesPlaceAndValues) {
  TestOutput output = Fresh();
  for (size_t i = 0; i < kRows; ++i)
    for (size_t j = 24; j < kColumns; ++j) output.candidate[i * kColumns + j] *= 0.5F;
  EXPECT_EQ(Hint(output),
            "only the last 6 columns of 30 are wrong: a boundary; off by a factor of 0.5000");
}

TEST(FailureHint, NamesShiftsAndTranspositions) {
  TestOutput output = Fresh();
  for (size_t i = 0; i < 600; ++i)
    output.candidate[i] = output.reference[i % kColumns == 0 ? i : i - 1];
  EXPECT_THAT(Hint(output), HasSubstr("shifted by one: element i holds what belongs at i - 1"));
  for (size_t i = 0; i < 600; ++i)
    output.candidate[i] = output.reference[i % kColumns == 29 ? i : i + 1];
  EXPECT_THAT(Hint(output), HasSubstr("shifted by one: element i holds what belongs at i + 1"));
  TestOutput square = Fresh(25, 25);
  for (size_t i = 0; i < 25; ++i)
    for (size_t j = 0; j < 25; ++j) square.candidate[i * 25 + j] = square.reference[j * 25 + i];
  EXPECT_THAT(Hint(square), StartsWith("transposed"));
}

TEST(FailureHint, NamesScatteredElements) {
  EXPECT_THAT(Hint(With([](size_t i, size_t j) {
                return (i == 3 && j == 17) || (i == 11 && j == 5) || (i == 15 && j == 22);
              })),
              HasSubstr("3 scattered elements (0.5%)"));
}

TEST(FailureHint, SpeaksOfNoShareOfASingleElement) {
  TestOutput loss = Fresh(1, 1);
  loss.candidate[0] += 0.25F;
  EXPECT_EQ(Hint(loss), "off by 0.25");
}

// The difference from an infinity is infinite, and so are all shares of it: the sign was said to be
// flipped.
TEST(FailureHint, NamesNumbersWhereInfinitiesBelong) {
  TestOutput output = Fresh();
  for (size_t i = 0; i < output.candidate.size(); i += 2) {
    output.reference[i] = -std::numeric_limits<float>::infinity();
    output.truth[i] = -std::numeric_limits<double>::infinity();
    output.candidate[i] = -1e30F;
  }
  EXPECT_THAT(Hint(output),
              HasSubstr("50.0% of the elements are finite where NaN or an infinity belongs"));
}

TEST(FailureHint, NamesLowerPrecision) {
  TestOutput output = Fresh();
  output.candidate = RoundToBits(output.reference, 11);
  EXPECT_EQ(
      Hint(output),
      "errors are as large as float16/tf32 arithmetic or a missing small term makes them, the "
      "problem asks for float32");
  output.candidate = RoundToBits(output.reference, 8);
  EXPECT_THAT(Hint(output), HasSubstr("errors are as large as bfloat16 arithmetic"));
}

TEST(FailureHint, ExplainsEachAdversarialDraw) {
  TestOutput output = Fresh();
  for (size_t i = 0; i < 600; ++i) output.candidate[i] *= 1 + 0.1F * static_cast<float>(i % 7);
  HintContext context;
  context.ordinary_passed = true;
  for (const char* kind :
       {"large-offset", "wide-range", "tiny-scale", "huge-scale", "signed-zeros", "ties",
        "small-integers", "zero-one", "outlier", "special-values", "signs", "patch"}) {
    context.draw_kind = kind;
    EXPECT_THAT(Hint(output, context), StartsWith("right on ordinary values, wrong ")) << kind;
  }
  context.draw_kind = "large-offset";
  EXPECT_THAT(Hint(output, context), HasSubstr("E[x^2] - mean^2"));
  output.candidate.assign(600, std::numeric_limits<float>::quiet_NaN());
  // A softmax without its maximum was told of cancellation.
  EXPECT_THAT(Hint(output, context), HasSubstr("exp without the maximum subtracted"));
  EXPECT_THAT(Hint(output, context), Not(HasSubstr("cancellation")));
  context.draw_kind = "huge-scale";
  EXPECT_THAT(Hint(output, context), HasSubstr("subtract the maximum"));
  EXPECT_THAT(Hint(output, context), HasSubstr("all NaN"));
  context.ordinary_passed = false;
  EXPECT_EQ(Hint(output, context), "all NaN");
}

TEST(FailureHint, HandlesIntegersAndOddShapes) {
  std::vector<int32_t> reference(600);
  std::iota(reference.begin(), reference.end(), 5);
  std::vector<int32_t> candidate = reference;
  for (int32_t& value : candidate) value += 1;
  OutputView view;
  view.name = "indices";
  view.dtype = DType::kInt32;
  view.shape = {600};
  view.count = 600;
  view.candidate = candidate.data();
  view.reference = reference.data();
  const auto hint = [&] { return FailureHint(view, CompareWithReference(view, {}, {}), {}).text; };
  EXPECT_THAT(hint(), HasSubstr("off by a constant: +1.000"));
  candidate = reference;
  for (int32_t& value : candidate) value -= 65536 * (1 + value % 3);
  EXPECT_THAT(hint(), HasSubstr("off by multiples of 65536: sums overflow 16 bits"));
  candidate = reference;
  for (size_t i = 590; i < 600; ++i) candidate[i] = 0;
  EXPECT_THAT(hint(), HasSubstr("zero where they should not be; only the last 10 elements of 600"));
}

TEST(FailureHint, IsNeverEmpty) {
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{}, {1}, {1, 1}, {1, 7}, {7, 1}, {2, 2, 2}, {3, 1, 40}}) {
    const auto count = static_cast<size_t>(
        std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>()));
    for (size_t wrong = 0; wrong < count; ++wrong) {
      TestOutput output;
      output.shape = shape;
      output.reference = NormalDraw(count, 5);
      output.candidate = output.reference;
      output.candidate[wrong] = 3.25F;
      output.truth.assign(output.reference.begin(), output.reference.end());
      EXPECT_FALSE(Hint(output).empty());
    }
  }
}

// A wrong last column once was called "shifted by one" as well: it has no neighbour to be shifted
// from.
TEST(FailureHint, AWrongLastColumnIsNotAShift) {
  const int64_t rows = 64, columns = 128;
  std::vector<float> right(static_cast<size_t>(rows * columns)), got;
  for (size_t i = 0; i < right.size(); ++i) right[i] = std::sin(static_cast<float>(i));
  got = right;
  for (int64_t row = 0; row < rows; ++row) got[static_cast<size_t>((row + 1) * columns - 1)] *= 3;
  OutputView output;
  output.name = "out";
  output.shape = {rows, columns};
  output.count = rows * columns;
  output.candidate = got.data();
  output.reference = right.data();
  const OutputComparison comparison = CompareWithReference(output, {}, {});
  const std::string hint = FailureHint(output, comparison, {}).text;
  EXPECT_THAT(hint, HasSubstr("only the last column"));
  EXPECT_THAT(hint, Not(HasSubstr("shifted")));
}

}  // namespace
}  // namespace assay
