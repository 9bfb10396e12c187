// Which references can judge a candidate, and by which draws.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <string>

#include "rules/gate1.h"
#include "rules/gate1_testing.h"

namespace assay {
namespace {

using testing::HasSubstr;

constexpr float kInf = std::numeric_limits<float>::infinity();

TestOutput Normal(std::vector<int64_t> shape) {
  TestOutput output;
  const int64_t count =
      std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  output.shape = std::move(shape);
  output.reference = output.candidate = NormalDraw(static_cast<size_t>(count), 1);
  output.truth.assign(output.reference.begin(), output.reference.end());
  return output;
}

// A copy of EfficientNet of batch norms over four values was wrong on one unusual draw or another.
// A quantised output moves by a step here and there: unusual draws still tell its mistakes.
TEST(ReferenceFitness, ScatteredOutputsAreOffAsAWhole) {
  const ReferenceError fine{1e-6, 1e-4}, quantised{1e-4, 0.06}, scattered{0.02, 0.08};
  const auto scatter = [](const std::vector<ReferenceError>& errors, PrecisionClass native) {
    return ScatterOf(errors, native);
  };
  EXPECT_EQ(scatter({fine, quantised}, PrecisionClass::kFloat32).words, "");
  const Scatter of_float32 = scatter({fine, scattered}, PrecisionClass::kFloat32);
  EXPECT_THAT(of_float32.words, HasSubstr("off by 0.02 of their norm"));
  EXPECT_FALSE(of_float32.meaningless);
  EXPECT_EQ(scatter({scattered}, PrecisionClass::kBFloat16).words, "");
  EXPECT_EQ(scatter({scattered}, PrecisionClass::kExact).words, "");
}

// The same copy was off by 0.26 at an element of an ordinary draw, where the reference was by 0.06.
TEST(ReferenceFitness, MuchScatteredOutputsTellNothing) {
  const std::vector<ReferenceError> errors{{0.02, 0.08}, {0.06, 0.1}};
  EXPECT_TRUE(ScatterOf(errors, PrecisionClass::kFloat32).meaningless);
  EXPECT_EQ(ScatterOf(errors, PrecisionClass::kBFloat16).words, "");
}

TEST(ReferenceFitness, DrawsWithoutMeaningAreNamed) {
  TestOutput output = Normal({8, 40});
  std::string reason;
  EXPECT_TRUE(DrawIsMeaningful(output.View(), false, &reason));
  output.reference[42] = kInf;
  EXPECT_FALSE(DrawIsMeaningful(output.View(), true, &reason));
  EXPECT_NE(reason.find("out[1][2]"), std::string::npos) << reason;
  output.truth[42] = double{kInf};
  EXPECT_FALSE(DrawIsMeaningful(output.View(), false, &reason));
  EXPECT_TRUE(DrawIsMeaningful(output.View(), true, &reason));
  OutputView without_oracle = output.View();
  without_oracle.oracle = nullptr;
  EXPECT_FALSE(DrawIsMeaningful(without_oracle, false, &reason));
  EXPECT_TRUE(DrawIsMeaningful(without_oracle, true, &reason));
  TestOutput bad = Normal({8, 40});
  for (float& value : bad.reference) value *= 1.4F;
  EXPECT_FALSE(DrawIsMeaningful(bad.View(), true, &reason));
  EXPECT_NE(reason.find("off by"), std::string::npos) << reason;
}

TEST(ReferenceFitness, CountsTheNumbersAmongTheReferencesOutputs) {
  TestOutput output = Normal({8, 40});
  EXPECT_EQ(CountNumbers(output.View()), 320);
  output.reference[42] = -kInf;
  output.reference[7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(CountNumbers(output.View()), 318);
}

// Judged against itself, an instance norm of a public suite was 'wrong': one instance of 128 held a
// value so small that float32 normalised it to something else than float64. The norm over all
// instances hid it, and no bound reaches over a quarter.
TEST(ReferenceFitness, ADrawOnWhichTheReferencesOwnCopyCouldFailSaysNothing) {
  TestOutput output = Normal({128, 64});
  for (int64_t i = 64; i < 128; ++i)
    output.reference[static_cast<size_t>(i)] = output.candidate[static_cast<size_t>(i)] = 0;
  EXPECT_FALSE(CompareWithOracle(output.View(), {}, nullptr).passed);
  std::string reason;
  EXPECT_FALSE(DrawIsMeaningful(output.View(), true, &reason));
  EXPECT_NE(reason.find("at an element"), std::string::npos) << reason;
}

}  // namespace
}  // namespace assay
