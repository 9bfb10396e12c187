#include "rules/scaled_copy.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "rules/elements.h"

namespace assay {
namespace {

CopyView ViewOf(const std::vector<float>& output, const std::vector<float>& input) {
  CopyView view;
  view.output = output.data();
  view.input = input.data();
  view.count = static_cast<int64_t>(input.size());
  return view;
}

TEST(ScaledCopy, FindsTheFactorThatIsNearest) {
  const std::vector<float> input = {1, 2, 3, 0}, output = {1.05F, 2.1F, 3.15F, 0};
  const auto factor = NearestFactor(ViewOf(output, input));
  ASSERT_TRUE(factor.has_value());
  EXPECT_NEAR(*factor, 1.05, 1e-6);
}

TEST(ScaledCopy, FindsNoneWhereEveryMultipleIsFarOff) {
  EXPECT_FALSE(NearestFactor(ViewOf({1, 0, 0, 1}, {1, 1, 1, 1})));
  EXPECT_FALSE(NearestFactor(ViewOf({0, 0}, {1, 1})));
  EXPECT_FALSE(NearestFactor(ViewOf({1, 1}, {0, 0})));
}

TEST(ScaledCopy, LeavesNanAndInfinityOutOfTheFactor) {
  const float inf = std::numeric_limits<float>::infinity();
  const auto factor = NearestFactor(ViewOf({2, 4, inf, NAN}, {1, 2, inf, 1}));
  ASSERT_TRUE(factor.has_value());
  EXPECT_DOUBLE_EQ(*factor, 2);
}

TEST(ScaledCopy, AFaintTermIsNotACopy) {
  const std::vector<float> input = {1, 2, 3, 4};
  std::vector<double> truth = {1, 2, 3, 4 + 4e-6};
  CopyView view = ViewOf(input, input);
  view.truth = truth.data();
  EXPECT_FALSE(IsScaledCopy(view, 1));
  truth[3] = 4;
  EXPECT_TRUE(IsScaledCopy(view, 1));
}

TEST(ScaledCopy, WithoutATruthRoundingOfTheOutputIsAllowed) {
  const std::vector<float> input = {0.1F, 0.3F};
  const std::vector<float> output = {0.1F * 3.14F, 0.3F * 3.14F};
  EXPECT_TRUE(IsScaledCopy(ViewOf(output, input), 3.14F));
  EXPECT_FALSE(IsScaledCopy(ViewOf(output, input), 3.15F));
}

// Every number of a short format survives being read and written.
TEST(ScaledCopy, WritesEveryShortNumber) {
  for (const DType dtype :
       {DType::kFloat16, DType::kBFloat16, DType::kFloat8E4M3, DType::kFloat8E5M2}) {
    const bool wide = wire::ElementBytes(dtype) == 2;
    const uint32_t count = wide ? 65536 : 256;
    for (uint32_t bits = 0; bits < count; ++bits) {
      const auto narrow = static_cast<uint8_t>(bits);
      const auto half = static_cast<uint16_t>(bits);
      const void* data = wide ? static_cast<const void*>(&half) : &narrow;
      const double value = LoadOne(dtype, data, 0);
      CopyView view;
      view.output_dtype = view.input_dtype = dtype;
      view.input = data;
      view.count = 1;
      const double again = LoadOne(dtype, ScaledCopy(view, 1).data(), 0);
      if (std::isnan(value))
        EXPECT_TRUE(std::isnan(again));
      else
        EXPECT_EQ(std::bit_cast<uint64_t>(value), std::bit_cast<uint64_t>(again)) << bits;
    }
  }
}

TEST(ScaledCopy, RoundsToNearestEvenAndBeyondTheLargestToInfinity) {
  const auto as_half = [](float value) {
    CopyView view;
    view.output_dtype = DType::kFloat16;
    view.input = &value;
    view.count = 1;
    return LoadOne(DType::kFloat16, ScaledCopy(view, 1).data(), 0);
  };
  EXPECT_EQ(as_half(1 + 0x1p-11F), 1);
  EXPECT_EQ(as_half(1 + 3 * 0x1p-11F), 1 + 0x1p-9);
  EXPECT_EQ(as_half(65519), 65504);
  EXPECT_TRUE(std::isinf(as_half(65520)));
  EXPECT_EQ(as_half(0x1p-25F), 0);
}

}  // namespace
}  // namespace assay
