// The kinds of wrong candidates rest on the words of rules/hint.cc: each pattern that the judge
// describes must find its kind.
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "rules/gate1.h"
#include "score/fingerprint.h"

namespace assay {
namespace {

constexpr size_t kRows = 20, kColumns = 30, kCount = kRows * kColumns;

// The kind of a candidate whose outputs are `wrong` of the right ones.
std::string KindFor(const std::function<float(size_t, float)>& wrong,
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
  Verdict verdict;
  verdict.outcome = Outcome::kWrong;
  verdict.correctness.emplace();
  verdict.correctness->hint = FailureHint(view, comparison, context);
  return KindOf(verdict);
}

TEST(HintKinds, PatternsOfErrors) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(KindFor([&](size_t, float) { return nan; }), "NaN or infinity");
  EXPECT_EQ(KindFor([&](size_t i, float y) { return i % 7 == 0 ? infinity : y; }),
            "NaN or infinity");
  EXPECT_EQ(KindFor([](size_t, float) { return 0.0F; }), "one value everywhere");
  EXPECT_EQ(KindFor([](size_t, float) { return 3.0F; }), "one value everywhere");
  EXPECT_EQ(KindFor([](size_t i, float y) { return i % 3 == 0 ? 0.0F : y; }), "zeros");
  EXPECT_EQ(KindFor([](size_t, float y) { return 2 * y; }), "factor, constant or sign");
  EXPECT_EQ(KindFor([](size_t, float y) { return y + 1; }), "factor, constant or sign");
  EXPECT_EQ(KindFor([](size_t, float y) { return -y; }), "factor, constant or sign");
  EXPECT_EQ(KindFor([](size_t i, float y) { return i < 570 ? y : y + 1 + float(i % 5); }),
            "part of the output");
  EXPECT_EQ(KindFor([](size_t i, float y) { return i % 2 == 0 ? y : y + 1 + float(i % 5); }),
            "part of the output");
  EXPECT_EQ(KindFor([](size_t i, float y) { return y * (i % 2 == 0 ? 1.0004F : 0.9996F); }),
            "precision");
  EXPECT_EQ(KindFor([](size_t i, float y) { return i == 77 || i == 391 ? y + 1 : y; }),
            "scattered elements");
}

TEST(HintKinds, UnusualValues) {
  HintContext context;
  context.ordinary_passed = true;
  for (const char* kind : {"large-offset", "wide-range", "tiny-scale", "huge-scale", "signed-zeros",
                           "ties", "small-integers", "zero-one", "outlier", "special-values"}) {
    context.draw_kind = kind;
    const std::string found =
        KindFor([](size_t i, float y) { return y * (1 + 0.3F * float(i % 7)); }, context);
    EXPECT_TRUE(found.ends_with(" alone") && found != "unusual values alone")
        << kind << ": " << found;
  }
}

}  // namespace
}  // namespace assay
