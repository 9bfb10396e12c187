// Each pattern that FailureHint describes has the kind of its mistake, whatever its words are.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "rules/gate1.h"

namespace assay {
namespace {

constexpr size_t kRows = 20, kColumns = 30, kCount = kRows * kColumns;

// The mistake of a candidate whose outputs are `wrong` of the right ones.
Mistake MistakeOf(const std::function<float(size_t, float)>& wrong,
                  const HintContext& context = {}) {
  std::vector<float> reference(kCount), candidate(kCount);
  for (size_t i = 0; i < kCount; ++i) {
    reference[i] = 0.5F + static_cast<float>((i * 37) % 101) / 50;
    candidate[i] = wrong(i, reference[i]);
  }
  const std::vector<double> truth(reference.begin(), reference.end());
  OutputView view;
  view.name = "out";
  view.shape = {kRows, kColumns};
  view.count = kCount;
  view.candidate = candidate.data();
  view.reference = reference.data();
  view.oracle = truth.data();
  const OutputComparison comparison = CompareWithOracle(view, {}, nullptr);
  EXPECT_FALSE(comparison.passed);
  return FailureHint(view, comparison, context).mistake;
}

TEST(Mistakes, PatternsOfErrors) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(MistakeOf([&](size_t, float) { return nan; }), Mistake::kNanOrInfinity);
  EXPECT_EQ(MistakeOf([&](size_t i, float y) { return i % 7 == 0 ? infinity : y; }),
            Mistake::kNanOrInfinity);
  EXPECT_EQ(MistakeOf([](size_t, float) { return 0.0F; }), Mistake::kOneValue);
  EXPECT_EQ(MistakeOf([](size_t, float) { return 3.0F; }), Mistake::kOneValue);
  EXPECT_EQ(MistakeOf([](size_t i, float y) { return i % 3 == 0 ? 0.0F : y; }), Mistake::kZeros);
  EXPECT_EQ(MistakeOf([](size_t, float y) { return 2 * y; }), Mistake::kFactor);
  EXPECT_EQ(MistakeOf([](size_t, float y) { return y + 1; }), Mistake::kFactor);
  EXPECT_EQ(MistakeOf([](size_t, float y) { return -y; }), Mistake::kFactor);
  EXPECT_EQ(MistakeOf([](size_t i, float y) { return i < 570 ? y : y + 1 + float(i % 5); }),
            Mistake::kPart);
  EXPECT_EQ(MistakeOf([](size_t i, float y) { return i % 2 == 0 ? y : y + 1 + float(i % 5); }),
            Mistake::kPart);
  EXPECT_EQ(MistakeOf([](size_t i, float y) { return y * (i % 2 == 0 ? 1.0004F : 0.9996F); }),
            Mistake::kPrecision);
  EXPECT_EQ(MistakeOf([](size_t i, float y) { return i == 77 || i == 391 ? y + 1 : y; }),
            Mistake::kScattered);
}

TEST(Mistakes, UnusualValues) {
  HintContext context;
  context.ordinary_passed = true;
  const std::pair<const char*, Mistake> kinds[] = {{"large-offset", Mistake::kLargeOffsets},
                                                   {"wide-range", Mistake::kWideRange},
                                                   {"tiny-scale", Mistake::kTinyValues},
                                                   {"huge-scale", Mistake::kHugeValues},
                                                   {"signed-zeros", Mistake::kSignedZeros},
                                                   {"ties", Mistake::kTies},
                                                   {"small-integers", Mistake::kSmallIntegers},
                                                   {"zero-one", Mistake::kZerosAndOnes},
                                                   {"outlier", Mistake::kOutliers},
                                                   {"special-values", Mistake::kSpecialValues},
                                                   {"signs", Mistake::kBothSigns}};
  const auto wrong = [](size_t i, float y) { return y * (1 + 0.3F * float(i % 7)); };
  for (const auto& [kind, mistake] : kinds) {
    context.draw_kind = kind;
    EXPECT_EQ(MistakeOf(wrong, context), mistake) << kind;
  }
  context.draw_kind = "ties";
  context.ordinary_passed = false;
  EXPECT_FALSE(IsOfUnusualValues(MistakeOf(wrong, context)));
}

TEST(Mistakes, AnOutputThatWasNeverWrittenOrIsAnInput) {
  const std::vector<float> before(kCount, -7);
  HintContext context;
  context.poison = before.data();
  EXPECT_EQ(MistakeOf([](size_t, float) { return -7.0F; }, context), Mistake::kNotWritten);
  std::vector<float> input(kCount);
  for (size_t i = 0; i < kCount; ++i) input[i] = float(i);
  context.inputs = {{"x", DType::kFloat32, kCount, input.data()}};
  EXPECT_EQ(MistakeOf([](size_t i, float) { return float(i); }, context), Mistake::kCopiedInput);
}

}  // namespace
}  // namespace assay
